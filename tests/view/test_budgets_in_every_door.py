"""A budget that is used up asks in every door, until it is raised."""

import asyncio
import os
import re
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import Scene, Script, Stage
from tests.view.doors import browser, plain_chat

from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import site
from bullpen.tui.notice import NoticeBar
from bullpen.view.state import conversation_view, stored_view

SPENT = {"usage": {"input": 60, "output": 0}, "cost": 0.5}
ONE: Script = [{"say": "One."}, SPENT]
TWO: Script = [{"say": "Two."}, SPENT]
UP = "max has used 60 tokens: its budget of 50 tokens is used up."


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    made = Stage(tmp_path)
    made.agent("max", ONE, TWO, more='memory = "shared"\nbudget = { tokens = 50 }')
    return made


async def last_words(conversation: Conversation) -> str:
    await conversation.until_quiet()
    messages = await conversation.messages(limit=9)
    return [one.message.content for one in messages if one.message.speaker.type == "ai"][-1]


async def used_up(conversation: Conversation) -> None:
    """Let the agent use all it may, and ask it for more."""
    for _ in range(2):
        await conversation.say("Go.")
        await conversation.until_quiet()
    assert await last_words(conversation) == "One."


def test_it_is_shown_and_raised_in_words(stage: Stage) -> None:
    async def story() -> tuple[list[str], str]:
        async with plain_chat(stage.team, stage.folder) as (conversation, send):
            await used_up(conversation)
            told = [await send(words) for words in ("/who", "/raise once ada", "/raise once max")]
            return told, await last_words(conversation)

    told, words = asyncio.run(story())
    assert f"  {UP}" in told[0]
    assert told[1] == "Nobody here is called 'ada'."
    assert words == "Two."


def test_the_full_screen_shows_it_with_its_choices(stage: Stage) -> None:
    async def story(scene: Scene) -> None:
        await used_up(scene.conversation)
        await scene.settled()
        shown = scene.app.screen.query_one(NoticeBar).decision
        assert shown is not None
        assert (shown.text, [choice.label for choice in shown.choices]) == (UP, ["Raise once", "Raise always", "Stop"])

    stage.play(story)


def test_the_page_has_a_button_for_each_choice(stage: Stage) -> None:
    async def story() -> tuple[str, str]:
        async with (
            site(stage.folder, stage.team) as served,
            httpx.AsyncClient(base_url=served.url, timeout=60) as client,
        ):
            await client.post(served.new_url(), headers={"Origin": served.url})
            conversation = (await served.hub.begin()).conversation
            await used_up(conversation)
            page = (await client.get(f"/c/{conversation.id}")).text
            form = {"budget": "max", "how": "always"}
            headers = {"HX-Request": "true", "Origin": served.url}
            (await client.post(f"/c/{conversation.id}/do/raise", data=form, headers=headers)).raise_for_status()
            return page, await last_words(conversation)

    page, words = asyncio.run(story())
    decisions = page[page.index('<section id="decisions"') :].partition("</section>")[0]
    assert UP in decisions
    assert re.findall(r'<button[^>]* id="([^"]+)"', decisions) == ["raise-once-max", "raise-always-max", "drop"]
    assert words == "Two."


def test_a_program_reads_it_and_chooses(stage: Stage) -> None:
    async def story() -> tuple[dict[str, object], str]:
        async with (
            site(stage.folder, stage.team) as served,
            httpx.AsyncClient(base_url=f"{served.url}/api", headers=served.headers, timeout=60) as client,
        ):
            conversation = (await served.hub.begin()).conversation
            here = f"/conversations/{conversation.id}"
            await used_up(conversation)
            seen = (await client.get(here)).json()
            (decision,) = seen["decisions"]
            assert (decision["kind"], decision["text"], decision["member"]) == ("budget", UP, "max")
            for chosen in (decision["choices"][2], decision["choices"][0]):
                (await client.post(f"{here}/{chosen['action']}", json=chosen["given"])).raise_for_status()
            assert (await client.get(here)).json()["decisions"] == []
            return seen["budgets"][0], await last_words(conversation)

    budget, words = asyncio.run(story())
    assert budget == {"member": "max", "kind": "tokens", "used": 60, "cap": 50, "is_estimate": False, "text": UP}
    assert words == "One.", "its waiting turn was dropped first"


def test_who_only_looks_at_the_database_sees_it_too(stage: Stage) -> None:
    async def story() -> None:
        async with browser(stage.team, stage.folder) as (conversation, _):
            await used_up(conversation)
            stored = await conversation.read(stored_view)
            assert stored.decisions == conversation_view(conversation).decisions

    asyncio.run(story())
