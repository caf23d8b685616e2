"""What each waiting turn waits for: worked out once, and shown in every door."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import Script, Stage
from tests.view.doors import PATIENCE_SECONDS, browser

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.routing.obstacles import Obstacle, ObstacleKind
from bullpen.routing.queue import WaitingTurn
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import site
from bullpen.tui.app import BullpenApp
from bullpen.tui.queue import QueuePanel
from bullpen.view.state import QueuedTurn, conversation_view, stored_view
from bullpen.view.status_lines import queue_lines, status_line
from bullpen.view.waiting import after, waits_for
from bullpen.web.openapi import description

HANGING: Script = [{"hang": True}]
OWN = WaitingTurn(id="9", member="max", message_id="msg-1")
OTHER = WaitingTurn(id="7", member="ada", message_id="msg-2")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    stage = Stage(tmp_path)
    stage.agent("max", HANGING, more='permissions = "edit"')
    stage.agent("sarah", HANGING, cli="codex", more='permissions = "edit"')
    stage.agent("ada", HANGING, cli="gemini")
    return stage


async def busy(say: Callable[[str], Awaitable[object]], conversation: Conversation) -> None:
    """Let max work, and four turns wait, each for another reason."""
    await say("[NEXT: max, kim, ada] Build it.")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not any(running.is_recorded for running in conversation.running.values()):
            await asyncio.sleep(0.01)
    await say("[NEXT: sarah] Build that.")
    await say("[NEXT: max] And more.")


def reasons(folder: Path) -> list[tuple[str, str, str]]:
    return [
        ("kim", "waits for max (turn 1): the step before", "1"),
        ("ada", "waits for kim to speak", "2"),
        ("sarah", f"waits for max (turn 1): both may edit {folder.resolve()}", "1"),
        ("max", "waits for its own turn 1", "1"),
    ]


def shown(queue: tuple[QueuedTurn, ...]) -> list[tuple[str, str, str]]:
    return [(turn.member, turn.waits_for, turn.after) for turn in queue]


@pytest.mark.parametrize(
    ("kind", "turn", "words", "other"),
    [
        ("person", OTHER, "waits for ada to speak", "7"),
        ("hold", OWN, "", ""),
        ("hold", OTHER, "waits for ada (turn 7), which a person must let begin", "7"),
        ("decision", OTHER, "waits for a decision about ada (turn 7)", "7"),
        ("step", OTHER, "waits for ada (turn 7): the step before", "7"),
        ("member", OTHER, "waits for its own turn 7", "7"),
        ("workspace", OTHER, "waits for ada (turn 7): both may edit /a b", "7"),
    ],
)
def test_every_reason_in_words(kind: ObstacleKind, turn: WaitingTurn, words: str, other: str) -> None:
    obstacle = Obstacle(kind=kind, turn=turn, workspace="/a\nb")

    assert (waits_for(OWN, obstacle), after(OWN, obstacle)) == (words, other)
    assert (waits_for(OWN, None), after(OWN, None)) == ("", "")


def test_a_turn_behind_another_one_waits_for_the_end_of_a_pause_too() -> None:
    behind, asked = Obstacle(kind="member", turn=OTHER), Obstacle(kind="decision", turn=OTHER)

    assert waits_for(OWN, behind, is_paused=True) == "waits for its own turn 7, and until you continue: /continue"
    assert waits_for(OWN, asked, is_paused=True) == "waits for a decision about ada (turn 7)"


def test_the_reasons_are_the_same_for_whoever_does_not_own_it(stage: Stage) -> None:
    async def story() -> None:
        async with open_team(stage.team, db=stage.db) as conversation:
            await busy(conversation.say, conversation)
            view = conversation_view(conversation)
            with SqliteStore(stage.db) as other:
                assert shown(view.queue) == shown(stored_view(other, conversation.id).queue) == reasons(stage.folder)
            assert "waiting: kim (for max), ada, sarah (for max), max" in status_line(view)
            assert queue_lines(view)[1:] == [
                f"turn {turn}  {member}: {words}"
                for turn, (member, words, _) in zip("2345", reasons(stage.folder), strict=True)
            ]

    asyncio.run(story())


def test_the_queue_in_words(stage: Stage) -> None:
    async def story() -> str:
        async with browser(stage.team, stage.folder) as (conversation, send):
            await busy(send, conversation)
            return await send("/queue")

    told = asyncio.run(story())

    for member, words, _ in reasons(stage.folder):
        assert f"{member}: {words}" in told


def test_the_queue_on_the_full_screen(stage: Stage) -> None:
    async def story() -> list[str]:
        async with open_team(stage.team, db=stage.db) as conversation:
            app = BullpenApp(conversation)
            async with app.run_test(size=(140, 60)) as pilot:
                await busy(conversation.say, conversation)
                panel = app.screen.query_one(QueuePanel)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while panel.option_count < 4:
                        await pilot.pause(0.05)
                return [str(option.prompt) for option in panel.options]

    options = asyncio.run(story())

    for option, (member, words, _) in zip(options, reasons(stage.folder), strict=True):
        first, _, second = option.partition("\n")
        assert first.endswith(member)
        assert words.startswith(second.removesuffix("…"))


def test_the_queue_in_the_browser_and_for_programs(stage: Stage) -> None:
    async def story() -> tuple[str, list[dict[str, str]]]:
        async with site(stage.folder, stage.team) as served, httpx.AsyncClient(timeout=60) as client:
            await client.post(served.new_url(), headers={"Origin": served.url})
            conversation = (await served.hub.begin()).conversation
            await busy(conversation.say, conversation)
            page = await client.get(f"{served.url}/c/{conversation.id}")
            queue = await client.get(f"{served.url}/api/conversations/{conversation.id}/queue", headers=served.headers)
            return page.text, queue.json()

    page, queue = asyncio.run(story())

    assert [(turn["member"], turn["waits_for"], turn["after"]) for turn in queue] == reasons(stage.folder)
    for _, words, _ in reasons(stage.folder):
        assert f"<bdi>{words}</bdi>" in page
    fields = description()["components"]["schemas"]["QueuedTurn"]["properties"]
    assert {"waits_for", "after"} <= set(fields)
