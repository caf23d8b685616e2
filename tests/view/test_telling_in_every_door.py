"""Queue, tell and cancel: three things that people do with a working agent, in the same words in every door."""

import asyncio
import os
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import Scene, Script, Stage
from tests.view.doors import DOORS, PATIENCE_SECONDS, plain_chat

from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import site
from bullpen.tui.help_screen import HelpScreen, HelpTable
from bullpen.view.addressees import addressees
from bullpen.view.help import WHILE_IT_WORKS

HANGING: Script = [{"say": "hm"}, {"hang": True}]
TOLD = "Told: max reads that in this turn, with its next step."
QUEUED = "Queued: ada cannot be told anything in this turn, and reads that in its next one."


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    stage = Stage(tmp_path)
    stage.agent("max", HANGING)
    stage.agent("ada", HANGING, cli="gemini")
    return stage


async def both_work(conversation: Conversation) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while {one.turn.member for one in conversation.running.values() if one.text} != {"max", "ada"}:
            await asyncio.sleep(0.005)


def test_a_person_reads_what_became_of_what_they_told(stage: Stage) -> None:
    async def story() -> tuple[list[str], list[str]]:
        async with plain_chat(stage.team, stage.folder) as (conversation, send):
            await send("[NEXT: max & ada] Go.")
            await both_work(conversation)
            said = [await send(f"/tell {name} look at the tests, too") for name in ("max", "ada")]
            return said, [turn.member for turn in conversation.waiting]

    # What is told waits for nothing; what cannot be told waits in the queue.
    assert asyncio.run(story()) == ([TOLD, QUEUED], ["ada"])


def test_a_program_that_tells_an_agent_something_reads_it_as_well(stage: Stage) -> None:
    async def story() -> list[str]:
        async with (
            site(stage.folder, stage.team) as served,
            httpx.AsyncClient(base_url=f"{served.url}/api", headers=served.headers, timeout=60) as client,
        ):
            conversation = (await served.hub.begin()).conversation
            here = f"/conversations/{conversation.id}"
            await client.post(f"{here}/messages", json={"text": "[NEXT: max & ada] Go."})
            await both_work(conversation)
            given = [{"member": name, "text": "look"} for name in ("max", "ada")]
            answers = [(await client.post(f"{here}/tell", json=one)).json() for one in given]
            assert answers[0]["id"] == conversation.id
            return [answer["told"] for answer in answers]

    assert asyncio.run(story()) == [TOLD, QUEUED]


def test_who_writes_to_an_agent_at_work_sees_before_that_it_is_queued(stage: Stage) -> None:
    async def story() -> list[str]:
        async with plain_chat(stage.team, stage.folder) as (conversation, send):
            before = addressees(conversation, "@max hi")
            await send("[NEXT: max & ada] Go.")
            await both_work(conversation)
            texts = ("@max hi", "@ada hi", "[NEXT: ada & max] hi")
            return [one.line for one in (before, *(addressees(conversation, text) for text in texts)) if one]

    assert asyncio.run(story()) == [
        "→ max",
        "→ max · max is working: queued for its next turn; /tell max … reaches it now",
        "→ ada · ada is working: queued for its next turn",
        "→ all · ada and max are working: queued for their next turns; /tell max … reaches it now",
    ]


@pytest.mark.parametrize("door", ["plain chat", "browser"])
def test_the_help_explains_each_in_a_sentence(door: str, stage: Stage) -> None:
    async def story() -> str:
        async with DOORS[door](stage.team, stage.folder) as (_, send):
            return " ".join((await send("/help all")).split())

    shown = asyncio.run(story())

    assert [words in shown for _, words in WHILE_IT_WORKS] == [True, True, True]


def test_so_does_the_help_of_the_full_screen(stage: Stage) -> None:
    async def story(scene: Scene) -> None:
        await scene.press("f1")
        await scene.until(lambda: isinstance(scene.app.screen, HelpScreen))
        shown = [row for rows in scene.app.screen.query_one(HelpTable).shown.values() for row in rows]
        assert [row in shown for row in WHILE_IT_WORKS] == [True, True, True]

    stage.play(story)
