"""Server-sent events: everything arrives, once, in order, also after the connection was lost."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import (
    Continued,
    ConversationEvent,
    Lagged,
    Trouble,
    TurnEvent,
    event_json,
    old_event_json,
)
from bullpen.testing.site import Site, site
from bullpen.testing.stage import write_team
from bullpen.turn_events import TextDelta
from bullpen.web import page_feed
from bullpen.web.api import NumberedEvent
from bullpen.web.frames import RECENT_BYTES, Frames, server_sent
from bullpen.web.updates import Update
from bullpen.web.updates import update as update_of

WAIT_SECONDS = 60

Sent = dict[str, str]


async def events(answer: httpx.Response) -> AsyncIterator[Sent]:
    event: Sent = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if not line:
            if "data" in event:
                yield event
            event = {}
        elif name:
            event[name] = f"{event[name]}\n{value}" if name in event else value


async def begun(served: Site) -> Any:
    opened = await served.hub.begin()
    return opened.conversation


def test_a_watcher_that_comes_back_misses_nothing_and_gets_nothing_twice(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "one two three four five six", "chunk": 1}]})

    async def story() -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            conversation = await begun(served)
            path = f"/api/conversations/{conversation.id}/events"
            await conversation.say("Count.")
            seen: list[Sent] = []
            while not seen or json.loads(seen[-1]["data"])["event"]["type"] != "quiet":
                headers = {"Last-Event-ID": seen[-1]["id"]} if seen else {}
                async with client.stream("GET", f"{path}?after=0", headers=headers) as answer:
                    assert answer.headers["content-type"].startswith("text/event-stream")
                    # Three events, and then the connection is lost.
                    count = 0
                    async for event in events(answer):
                        seen.append(event)
                        count += 1
                        if count == 3 or json.loads(event["data"])["event"]["type"] == "quiet":
                            break
            numbers = [int(event["id"]) for event in seen]
            assert numbers == list(range(1, conversation.last_number + 1))
            watched = [msgspec.json.decode(event["data"], type=NumberedEvent) for event in seen]
            pieces = [w.event.event for w in watched if isinstance(w.event, TurnEvent)]
            assert "".join(p.text for p in pieces if isinstance(p, TextDelta)) == "one two three four five six"

    asyncio.run(asyncio.wait_for(story(), WAIT_SECONDS))


def test_a_page_gets_html_and_the_state_and_the_same_text_again_after_a_loss(tmp_path: Path) -> None:
    text = {"say": "**bold** <script>alert(1)</script>", "chunk": 4}
    team = write_team(tmp_path, {"max": [{"wait_for": "go"}, text]})

    async def story() -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            conversation = await begun(served)
            # Nothing is rendered for pages until somebody has one open.
            await client.get(f"/c/{conversation.id}")
            path = f"/c/{conversation.id}/stream?after=0"
            await conversation.say("Go.")
            names, html = [], ""
            async with client.stream("GET", path) as answer:
                async for event in events(answer):
                    names.append(event["event"])
                    if event["event"] == "began":
                        (tmp_path / "go").touch()
                    if event["event"] == "said":
                        html = json.loads(event["data"])["html"]
                    if event["event"] == "state" and "ended" in names:
                        break
            assert {"said", "began", "text", "ended", "state"} <= set(names)
            assert "<strong>bold</strong> &lt;script&gt;" in html
            assert names.index("began") < names.index("text") < names.index("ended")

    asyncio.run(asyncio.wait_for(story(), WAIT_SECONDS))


def test_a_page_of_an_earlier_opening_is_told_to_load_again(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})

    async def story() -> str:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers) as client,
        ):
            conversation = await begun(served)
            return (await client.get(f"/c/{conversation.id}/stream?epoch=00000000&after=7")).text

    assert asyncio.run(story()).startswith("event: reload\n")


def test_whoever_was_away_too_long_is_told_so(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})

    async def story() -> list[Sent]:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers) as client,
        ):
            opened = await served.hub.begin()
            conversation = opened.conversation
            for _ in range(RECENT_BYTES // 100_000 + 10):
                conversation._journal.publish(Trouble(text="x" * 100_000))
            while opened.feed.frames.number < RECENT_BYTES // 100_000:
                await asyncio.sleep(0.01)
            async with client.stream("GET", f"/c/{conversation.id}/stream?after=0") as answer:
                async for event in events(answer):
                    return [event]
        return []

    assert [event["event"] for event in asyncio.run(story())] == ["lagged"]


def test_a_viewer_that_takes_nothing_costs_the_others_nothing(tmp_path: Path) -> None:
    """It is not read at all; the text that the agent writes is larger than what any socket holds back."""
    team = write_team(tmp_path, {"max": [{"flood": 8_000_000, "line": 1_000}]})

    async def story() -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            conversation = await begun(served)
            path = f"/api/conversations/{conversation.id}/events?after=0"
            async with client.stream("GET", path) as stalled, client.stream("GET", path) as other:
                assert stalled.status_code == 200
                await conversation.say("Go.")
                async for event in events(other):
                    if json.loads(event["data"])["event"]["type"] == "quiet":
                        break
            assert len((await conversation.messages())[-1].message.content) > 7_900_000

    asyncio.run(asyncio.wait_for(story(), 3 * WAIT_SECONDS))


def test_streams_end_when_a_conversation_is_closed_here(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})

    async def story() -> int:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            conversation = await begun(served)
            await conversation.say("Hello.")
            await conversation.until_quiet()
            async with client.stream("GET", f"/c/{conversation.id}/stream") as answer:
                closing = asyncio.create_task(served.hub.release(conversation.id))
                async for _ in answer.aiter_bytes():
                    pass
                await closing
            return (await client.get(f"/c/{conversation.id}/stream")).status_code

    assert asyncio.run(asyncio.wait_for(story(), WAIT_SECONDS)) == 409


@pytest.mark.parametrize("text", ["one\ntwo", "one\r\ntwo", "one\rtwo", "\n\nevent: forged\ndata: x\n\n", "", "id: 7"])
def test_no_text_can_forge_an_event(text: str) -> None:
    sent = server_sent("text", text.encode(), 3).decode()

    lines = sent.split("\n")
    assert lines[:2] == ["event: text", "id: 3"]
    assert all(line.startswith("data: ") for line in lines[2:-2])
    assert lines[-2:] == ["", ""]
    assert "\r" not in sent


def test_events_are_json_for_programs() -> None:
    numbered = NumberedEvent(number=4, event=Lagged(missed=2))

    assert msgspec.json.decode(msgspec.json.encode(numbered), type=NumberedEvent) == numbered


@pytest.mark.parametrize(
    ("event", "now", "before"),
    [
        (Lagged(missed=2), {"type": "lagged", "news": "lagged", "missed": 2}, {"news": "lagged", "missed": 2}),
        (Continued(), {"type": "continued", "news": "went_on"}, {"news": "went_on"}),
    ],
)
def test_programs_of_an_earlier_version_find_the_names_that_they_know(
    event: ConversationEvent, now: dict[str, object], before: dict[str, object]
) -> None:
    assert (json.loads(event_json(event)), json.loads(old_event_json(event))) == (now, before)


def test_an_earlier_way_to_watch_still_works(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})

    async def story() -> list[str]:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            conversation = await begun(served)
            await conversation.say("Hello?")
            await conversation.until_quiet()
            seen = []
            async with client.stream("GET", f"/api/conversations/{conversation.id}/watch?after=0") as answer:
                async for event in events(answer):
                    seen.append(json.loads(event["data"])["news"]["news"])
                    if seen[-1] == "quiet":
                        return seen
        return seen

    assert asyncio.run(asyncio.wait_for(story(), WAIT_SECONDS))[:2] == ["said", "queued"]


def test_a_page_that_comes_back_gets_what_it_has_missed_or_learns_that_it_is_gone() -> None:
    async def read(frames: Frames, after: int | None) -> bytes:
        with frames.reading(after) as reader:
            frames.publish("last", b"z")
            return b"".join(await reader.several())

    async def story() -> None:
        frames = Frames()
        for letter in (b"a", b"b", b"c"):
            frames.publish("letter", letter)
        missed = await read(frames, 2)
        assert missed == b"".join([server_sent("letter", b"c", 3), server_sent("last", b"z", 4)])
        assert await read(frames, None) == server_sent("last", b"z", 5)
        # A number from an earlier process.
        assert (await read(frames, 99)).startswith(server_sent("lagged", b"{}", 0) + server_sent("letter", b"a", 1))
        frames.publish("large", b"x" * RECENT_BYTES)
        frames.publish("letter", b"d")
        gone = await read(frames, 3)
        assert gone.startswith(server_sent("lagged", b"{}", 7) + server_sent("letter", b"d", 8))

    asyncio.run(story())


def test_nothing_is_rendered_while_there_is_no_page_and_one_that_comes_back_learns_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})
    rendered: list[str] = []

    async def update(numbered: Numbered, conversation: Conversation) -> Update | None:
        rendered.append(type(numbered.event).__name__)
        return await update_of(numbered, conversation)

    monkeypatch.setattr(page_feed, "update", update)

    async def first(client: httpx.AsyncClient, path: str) -> str:
        async with client.stream("GET", path) as answer:
            async for event in events(answer):
                return event["event"]
        return ""

    async def story() -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            opened = await served.hub.begin()
            conversation, here = opened.conversation, f"/c/{opened.conversation.id}"
            await conversation.say("Hello?")
            await conversation.until_quiet()
            assert rendered == []
            assert await first(client, f"{here}/stream?after=0") == "lagged"

            # One that was rendered is expected, so nothing is missed until it reads.
            page = (await client.get(here)).text
            number = re.findall(r'data-number="(\d+)"', page)[0]
            await conversation.say("And now?")
            await conversation.until_quiet()
            assert "Said" in rendered
            assert await first(client, f"{here}/stream?after={number}") == "said"

    asyncio.run(asyncio.wait_for(story(), WAIT_SECONDS))


def test_a_page_that_reads_nothing_is_let_go_and_holds_no_memory() -> None:
    async def story() -> int:
        frames = Frames()
        with frames.reading() as reader:
            for _ in range(40):
                frames.publish("text", b"x" * 1_000_000)
            first = await reader.several()
            with pytest.raises(StopAsyncIteration):
                await reader.several()
            return len(first)

    assert asyncio.run(story()) < 20
