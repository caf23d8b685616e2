"""The pages: what they show, and what their forms do, also without a script."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from tests.view.remembering import GONE, write_remembering

from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, write_team
from bullpen.web.live import LiveConversation

WAIT_SECONDS = 60


@asynccontextmanager
async def browser(
    folder: Path, agents: dict[str, Script], people: tuple[str, ...] = ("kim",)
) -> AsyncIterator[tuple[Site, httpx.AsyncClient]]:
    """Yield a site and a client that entered like a browser: with a ticket, a cookie, and an Origin on its forms."""
    team = write_team(folder, agents, people=people)
    async with (
        site(folder, team) as served,
        httpx.AsyncClient(
            base_url=served.url, timeout=WAIT_SECONDS, follow_redirects=True, headers={"Origin": served.url}
        ) as client,
    ):
        entered = await client.post(served.new_url())
        assert (entered.status_code, entered.url.path) == (200, "/")
        yield served, client


async def quiet(opened: LiveConversation | None) -> None:
    assert opened is not None
    await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)


def test_a_conversation_from_the_first_message_to_the_export_with_forms_only(tmp_path: Path) -> None:
    agents: dict[str, Script] = {"max": [{"say": "Done, see `a.py`. [NEXT: sarah]"}], "sarah": [{"say": "Good."}]}

    async def story() -> None:
        async with browser(tmp_path, agents) as (served, client):
            begun = await client.post("/c")
            here = begun.url.path
            assert re.fullmatch(r"/c/[a-z]+-[a-z]+-[0-9a-f]+", here)
            assert "Say what you want done" in begun.text
            message_id = re.search(r'name="id" value="(\w+)"', begun.text)
            assert message_id
            form = {"text": "Please do it.", "id": message_id[1]}
            await client.post(f"{here}/messages", data=form)
            await client.post(f"{here}/messages", data=form)
            await quiet(served.hub.get(here.removeprefix("/c/")))
            page = (await client.get(here)).text
            assert re.findall(r'<article id="m(\d+)" class="message (\w+)', page) == [
                ("1", "human"),
                ("2", "ai"),
                ("3", "ai"),
            ]
            assert "<code>a.py</code>" in page
            assert "[NEXT: sarah]" not in page.split('id="messages"')[1].split('id="live"')[0]
            assert "waits for you" in (await client.get("/")).text
            listed = (await client.get("/", params={"q": "see"})).text
            assert "1 message" in listed
            assert f"{here}?at=2#m2" in listed
            # In words, and with the title of its conversation.
            hit = listed.split('class="card"')[1]
            assert "<bdi>Done, see a.py.</bdi>" in hit
            assert "<bdi>Please do it.</bdi>" in hit
            exported = await client.get(f"{here}/export/md")
            assert exported.headers["content-disposition"].startswith("attachment")
            assert "> Good." in exported.text
            timeline = (await client.get(f"{here}/timeline")).text
            assert timeline.count('class="turn done"') == 2
            seen = (await client.get(f"{here}/prompt/turn-2")).text
            assert "Done, see" in seen
            beside = (await client.get(f"{here}/prompt/next-max", params={"beside": "next-sarah"})).text
            assert "What <bdi>max</bdi> would be given, compared with <bdi>sarah</bdi>" in beside
            assert 'class="removed"' in beside

    asyncio.run(story())


@pytest.mark.parametrize(
    ("action", "form", "speakers"),
    [
        ("retry", {"turn": "1"}, ["kim"]),
        ("skip", {"turn": "1"}, ["kim"]),
        ("hand-over", {"turn": "1", "member": "sarah"}, ["kim", "sarah"]),
    ],
)
def test_a_failure_is_decided_with_a_button(
    action: str, form: dict[str, str], speakers: list[str], tmp_path: Path
) -> None:
    async def story() -> None:
        async with browser(tmp_path, {"max": [{"stderr": "no"}, {"exit": 3}], "sarah": [{"say": "Yes."}]}) as (
            served,
            client,
        ):
            here = (await client.post("/c")).url.path
            opened = served.hub.get(here.removeprefix("/c/"))
            await client.post(f"{here}/messages", data={"text": "Go."})
            await quiet(opened)
            page = (await client.get(here)).text
            assert f'action="{here}/do/{action}"' in page
            await client.post(f"{here}/do/{action}", data=form)
            await quiet(opened)
            assert opened is not None
            stored = await opened.conversation.messages()
            assert [one.message.speaker.role_id for one in stored] == speakers
            assert len(opened.conversation.undecided) == (1 if action == "retry" else 0)

    asyncio.run(story())


def test_several_failures_are_skipped_with_one_button(tmp_path: Path) -> None:
    fails: Script = [{"stderr": "no"}, {"exit": 3}]

    async def story() -> None:
        async with browser(tmp_path, {"max": fails, "sarah": fails}) as (served, client):
            here = (await client.post("/c")).url.path
            opened = served.hub.get(here.removeprefix("/c/"))
            assert opened is not None
            await client.post(f"{here}/messages", data={"text": "[NEXT: max & sarah] Go."})
            await quiet(opened)
            page = (await client.get(here)).text
            [form] = [one for one in re.findall(r"<form.*?</form>", page, re.DOTALL) if "Skip all" in one]
            assert f'action="{here}/do/skip"' in form
            assert re.findall(r'name="(\w+)" value="(\w+)"', form) == [("everything", "true")]
            await client.post(f"{here}/do/skip", data={"everything": "true"})
            assert opened.conversation.undecided == ()

    asyncio.run(story())


def test_the_queue_is_shown_reordered_and_dropped(tmp_path: Path) -> None:
    agents: dict[str, Script] = {"max": [{"hang": True}], "sarah": [{"say": "S"}], "ada": [{"say": "A"}]}

    async def story() -> None:
        async with browser(tmp_path, agents) as (served, client):
            here = (await client.post("/c")).url.path
            opened = served.hub.get(here.removeprefix("/c/"))
            assert opened is not None
            await client.post(f"{here}/messages", data={"text": "[NEXT: max, sarah, ada] Go."})
            while not opened.conversation.running:
                await asyncio.sleep(0.01)
            page = (await client.get(here)).text
            form = re.search(rf'action="{here}/do/reorder".*?</form>', page, re.DOTALL)
            assert form
            order = re.findall(r'name="turns" value="(\d+)"', form[0])
            assert order == ["3", "2"]
            await client.post(f"{here}/do/reorder", data={"turns": order})
            assert [turn.member for turn in opened.conversation.waiting] == ["ada", "sarah"]
            await client.post(f"{here}/do/drop", data={"turn": "2"})
            assert [turn.member for turn in opened.conversation.waiting] == ["ada"]
            await client.post(f"{here}/messages", data={"text": "/cancel"})
            assert "was cancelled" in (await client.get(here)).text
            await client.post(f"{here}/do/drop")
            await client.post(f"{here}/messages", data={"text": "/task Ship it"})
            assert opened.conversation.team_task == "Ship it"
            assert not opened.conversation.waiting

    asyncio.run(story())


def test_a_missed_hand_over_can_be_made_with_a_button(tmp_path: Path) -> None:
    async def story() -> None:
        async with browser(tmp_path, {"max": [{"say": "Sarah, please review this."}], "sarah": [{"say": "Ok."}]}) as (
            served,
            client,
        ):
            here = (await client.post("/c")).url.path
            opened = served.hub.get(here.removeprefix("/c/"))
            await client.post(f"{here}/messages", data={"text": "Go."})
            await quiet(opened)
            page = (await client.get(here)).text
            assert 'name="names" value="sarah"' in page
            await client.post(f"{here}/do/ask", data={"names": "sarah"})
            await quiet(opened)
            assert opened is not None
            assert (await opened.conversation.messages())[-1].message.content == "Ok."

    asyncio.run(story())


def test_many_messages_come_page_by_page(tmp_path: Path) -> None:
    async def story() -> None:
        async with browser(tmp_path, {"max": [{"say": "ok"}]}, people=("kim", "lee")) as (served, client):
            here = (await client.post("/c")).url.path
            opened = served.hub.get(here.removeprefix("/c/"))
            assert opened is not None
            for number in range(60):
                await opened.conversation.say(f"[NEXT: lee] number {number}", sender="kim")
            page = (await client.get(here)).text
            older = (await client.get(f"{here}/older", params={"before": 11})).text
            newer = (await client.get(f"{here}/newer", params={"after": 58})).text
            around = (await client.get(here, params={"at": 5})).text
            numbers = [re.findall(r'<article id="m(\d+)"', text) for text in (page, older, newer, around)]
            assert numbers[0] == [str(number) for number in range(11, 61)]
            assert numbers[1] == [str(number) for number in range(1, 11)]
            assert numbers[2] == ["59", "60"]
            assert "5" in numbers[3]
            assert "Earlier messages" in page
            assert "Earlier messages" not in older

    asyncio.run(story())


def test_what_an_agent_did_can_be_seen_while_it_works_and_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    from bullpen.testing.stage import put_on_path

    tool = {"name": "Bash", "input": {"command": "ls /tmp"}, "output": "a.txt"}
    script: Script = [
        {"think": "Hm."},
        {"tool": tool},
        {"say": "Seen. "},
        {"wait_for": "go"},
        {"usage": {"input": 1200, "output": 34}, "cost": 0.5},
    ]
    monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, {'claude': [script]})}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')

    async def story() -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            opened = await served.hub.begin()
            here = f"/c/{opened.conversation.id}"
            await opened.conversation.say("Look.")
            while not any(running.text for running in opened.conversation.running.values()):
                await asyncio.sleep(0.01)
            while "Seen." not in (live := (await client.get(f"{here}/newer")).text):
                await asyncio.sleep(0.01)
            assert "ls /tmp" in live
            (tmp_path / "go").touch()
            await quiet(opened)
            steps = (await client.get(f"{here}/steps/1")).text
            assert "ls /tmp" in steps
            assert "a.txt" in steps
            assert "Hm." in steps
            side = (await client.get(here)).text
            assert "1.2k tokens · $0.50" in side
            assert 'class="message ai live' not in (await client.get(f"{here}/newer")).text

    asyncio.run(story())


def test_a_page_is_small_and_brings_everything_with_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with browser(tmp_path, {"max": [{"say": "ok"}]}) as (_, client):
            page = await client.post("/c")
            addresses = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
            assert all(address.startswith("/") and not address.startswith("//") for address in addresses)
            files = [await client.get(address) for address in addresses if address.startswith("/static/")]
            assert len(files) >= 5
            for file in files:
                assert "immutable" in file.headers["cache-control"]
            assert sum(len(file.content) for file in [page, *files]) < 160_000
            assert " style=" not in page.text
            assert "<style" not in page.text
            assert re.findall(r"<script(?![^>]* src=)", page.text) == []
            assert re.findall(r"\son\w+=", page.text) == []

    asyncio.run(story())


def test_the_inspector_shows_what_was_already_in_the_session_and_what_was_new(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "conversations.db") as store:
        id_ = write_remembering(store)

    async def story() -> None:
        async with browser(tmp_path, {"max": [{"say": "Done."}]}) as (_, client):
            page = (await client.get(f"/c/{id_}/prompt/turn-2")).text
            known, new = page.split("Already in its session")[1].split("<h2>New</h2>")
            assert re.findall(r"<td><bdi>(\w+) (\d)<", known) == [("Question", "1"), ("Answer", "1")]
            assert known.count(f'since <a href="/c/{id_}/prompt/turn-1">turn 1</a>') == 2
            assert re.findall(r"<td><bdi>(\w+) (\d)<", new) == [("Question", "2")]
            assert f"rebuilt: {GONE}" in (await client.get(f"/c/{id_}/prompt/turn-3")).text
            compared = (await client.get(f"/c/{id_}/prompt/turn-2?beside=turn-3")).text
            assert "Only <bdi>max</bdi>, turn 2" not in compared
            assert re.findall(r"<td><bdi>(\w+) (\d)<", compared) == [("Answer", "2"), ("Question", "3")]
            colors = re.findall(r'class="swatch (s\d)" aria-hidden="true"></span>(\w+) ', compared)
            assert [color for color, name in colors if name == "message"] == ["s3", "s3"]

    asyncio.run(story())
