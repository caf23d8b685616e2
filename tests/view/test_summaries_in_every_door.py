"""A summary is asked for, seen as what it is, and dropped; test_commands_in_every_door.py is about the doors."""

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.conversation.stage import Stage
from tests.view.doors import PATIENCE_SECONDS, plain_chat

from bullpen.conversation.conversation import Conversation
from bullpen.routing.summaries import Summary
from bullpen.testing.site import site
from bullpen.view.summaries import summaries_text

SUMMARY = "They counted to four (#1)."
WORDS = "#6 covers #1: by max, 26 B, used in prompts"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    stage = Stage(tmp_path)
    stage.person("kim")
    stage.agent("max", SUMMARY, window=3)
    return stage.write()


async def count(conversation: Conversation) -> None:
    for word in ("one", "two", "three", "four"):
        await conversation.note(word, sender="kim")


def test_it_is_asked_for_listed_and_dropped(team: Path) -> None:
    async def story() -> None:
        async with plain_chat(team, team.parent) as (conversation, send), asyncio.timeout(PATIENCE_SECONDS):
            await count(conversation)
            assert await send("/sumup max") in ("", "#5")
            await conversation.until_quiet()
            used = Summary(number=6, member="max", first=1, last=1, size=len(SUMMARY))
            assert conversation.progress.summaries == (used,)
            assert WORDS in await send("/summaries")
            assert WORDS in await conversation.read(summaries_text, conversation.progress)
            await send("/drop-summary 6")
            assert [one.dropped_by for one in conversation.progress.summaries] == ["kim"]

    asyncio.run(story())


def test_the_page_folds_it_and_the_state_lists_it(team: Path) -> None:
    async def story() -> None:
        async with (
            site(team.parent, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=60) as client,
        ):
            conversation = (await served.hub.begin()).conversation
            await count(conversation)
            answer = await client.post(f"/api/conversations/{conversation.id}/sum-up", json={})
            assert answer.is_success, answer.text
            await conversation.until_quiet()
            page = (await client.get(f"/c/{conversation.id}")).text
            assert '<span class="to">summary of #1</span>' in page
            assert '<details class="summed"><summary>What it says</summary>' in page
            state = (await client.get(f"/api/conversations/{conversation.id}")).json()
            assert state["summaries"] == [
                {"number": 6, "member": "max", "first": 1, "last": 1, "size": 26, "is_used": True, "dropped_by": ""}
            ]
            messages = (await client.get(f"/api/conversations/{conversation.id}/messages")).json()
            assert messages[-1]["message"]["extra"] == {"summaryOf": {"first": 1, "last": 1}}

    asyncio.run(story())
