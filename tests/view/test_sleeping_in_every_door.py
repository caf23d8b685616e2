"""A turn that sleeps until a quota is back says for how much longer, in every door."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import Script, Stage
from tests.view.doors import PATIENCE_SECONDS, plain_chat

from bullpen.app import open_team
from bullpen.clock import milliseconds
from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import site
from bullpen.tui.app import BullpenApp
from bullpen.tui.queue import QueuePanel
from bullpen.view.waiting import countdown

OUT: Script = [{"error": 429, "message": "You've hit your limit, resets in 2h"}]
SLEEPS = r"sleeps until (?:\d{4}-\d\d-\d\d )?\d\d:\d\d: neither max nor a stand-in can be used before"
# Codex names no time, so it may be back in half an hour.
COUNTED = r"\(in \d+ min \d\d s\)"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    stage = Stage(tmp_path)
    stage.agent("max", OUT, more='stand_in = ["sarah"]')
    stage.agent("sarah", OUT, cli="codex")
    return stage


async def asleep(say: Callable[[str], Awaitable[object]], conversation: Conversation) -> None:
    await say("[NEXT: max] Build it.")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(conversation.progress.rests) < 2 or conversation.running:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("seconds", "words"), [(7200, "in 2 h 00 min"), (65, "in 1 min 05 s"), (5.4, "in 5 s"), (-3, "in 0 s")]
)
def test_a_countdown_is_in_whole_seconds(seconds: float, words: str) -> None:
    assert countdown(int(1000 * seconds) + 7, 7) == words


def test_the_queue_counts_down(stage: Stage) -> None:
    async def story() -> str:
        async with plain_chat(stage.team, stage.folder) as (conversation, send):
            await asleep(send, conversation)
            return await send("/queue")

    assert re.search(f"max: {SLEEPS} {COUNTED}", asyncio.run(story()))


def test_the_full_screen_counts_down(stage: Stage) -> None:
    async def story() -> set[str]:
        async with open_team(stage.team, db=stage.db) as conversation:
            app = BullpenApp(conversation)
            async with app.run_test(size=(140, 60)) as pilot:
                await asleep(conversation.say, conversation)
                panel, seen = app.screen.query_one(QueuePanel), set[str]()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while len(seen) < 2:
                        await pilot.pause(0.1)
                        options = "".join(str(option.prompt) for option in panel.options).replace("\n", " ")
                        seen |= {*re.findall(f"{SLEEPS} ({COUNTED})", options)}
                return seen

    assert len(asyncio.run(story())) >= 2, "the clock moves"


def test_a_page_and_a_program_know_until_when(stage: Stage) -> None:
    async def story() -> None:
        async with site(stage.folder, stage.team) as served, httpx.AsyncClient(timeout=60) as client:
            await client.post(served.new_url(), headers={"Origin": served.url})
            conversation = (await served.hub.begin()).conversation
            await asleep(conversation.say, conversation)
            until = min(rest.until for rest in conversation.progress.rests.values())
            assert until > milliseconds()
            page = await client.get(f"{served.url}/c/{conversation.id}")
            assert f'data-until="{until}"' in page.text
            queue = await client.get(f"{served.url}/api/conversations/{conversation.id}/queue", headers=served.headers)
            assert [one["until"] for one in queue.json()] == [until]

    asyncio.run(story())
