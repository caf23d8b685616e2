"""The hub: who may continue a conversation here, and what a closed tab ends, which is nothing."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests import forked
from tests.view.remembering import write_remembering

from bullpen import open_team
from bullpen.errors import ReadOnlyHere, UnknownConversation
from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import load_team
from bullpen.team.trust import Trust
from bullpen.testing.site import site
from bullpen.testing.stage import write_team
from bullpen.view.listing import conversation_summary

WAIT_SECONDS = 60


def test_a_conversation_is_resumed_with_its_own_team_if_that_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    team = write_team(tmp_path / "a", {"max": [{"say": "Hi."}]})
    other = write_team(tmp_path / "b", {"ada": [{"say": "Ho."}]})

    async def story() -> None:
        async with open_team(team, db=tmp_path / "conversations.db") as conversation:
            await conversation.say("Hello?")
            await conversation.until_quiet()
            conversation_id = conversation.id
        async with site(tmp_path, other) as served:
            stored = await served.hub.read(conversation_summary, conversation_id)
            assert "is not trusted" in served.hub.why_read_only(stored)
            with pytest.raises(ReadOnlyHere, match="is not trusted"):
                await served.hub.resume(conversation_id)
            loaded = load_team(team)
            Trust().remember(loaded.path, loaded.text)
            assert served.hub.why_read_only(stored) == ""
            first, second = await asyncio.gather(served.hub.resume(conversation_id), served.hub.resume(conversation_id))
            assert first is second
            assert [member.name for member in first.conversation.team.agents] == ["max"]

    asyncio.run(story())


def test_a_conversation_of_another_process_can_be_read_but_not_continued(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})
    program = f"""
import asyncio, sys
from bullpen import open_team
async def main():
    async with open_team({str(team)!r}, db={str(tmp_path / "conversations.db")!r}) as conversation:
        await conversation.say("Here I am.")
        print(conversation.id, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""

    async def story(conversation_id: str) -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers) as client,
        ):
            page = (await client.get(f"/c/{conversation_id}")).text
            assert "Here I am." in page
            assert "You can read this conversation here" in page
            assert f"It is open in process {owner.pid}" in page
            assert 'id="composer"' not in page
            refused = await client.post(f"/c/{conversation_id}/open", headers={"Origin": served.url})
            assert refused.status_code == 409
            assert f"open in process {owner.pid}" in refused.text

    with forked.start(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "LANG": os.environ["LANG"]},
    ) as owner:
        assert owner.stdout is not None
        asyncio.run(story(owner.stdout.readline().strip()))
        owner.communicate("\n")


def test_a_conversation_without_a_team_file_says_how_to_continue_it(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Yes."}]})
    with SqliteStore(tmp_path / "conversations.db") as store:
        id_ = write_remembering(store)

    async def story() -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers) as client,
        ):
            page = (await client.get(f"/c/{id_}")).text
            assert "It was not started from a team file." in page
            assert f"bullpen chat TEAM.toml --resume {id_}" in page

    asyncio.run(story())


def test_a_browser_that_goes_away_ends_no_agent(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"wait_for": "go"}, {"say": "Still here."}]})

    async def story() -> str:
        async with site(tmp_path, team) as served:
            async with httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client:
                opened = await served.hub.begin()
                async with client.stream("GET", f"/c/{opened.conversation.id}/stream") as answer:
                    assert answer.status_code == 200
                    await client.post(f"/api/conversations/{opened.conversation.id}/messages", json={"text": "Go."})
            (tmp_path / "go").touch()
            await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)
            return (await opened.conversation.messages())[-1].message.content

    assert asyncio.run(story()) == "Still here."


def test_nothing_begins_without_a_team_and_nothing_unknown_is_resumed(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as served:
            with pytest.raises(ReadOnlyHere):
                await served.hub.begin()
            with pytest.raises(UnknownConversation):
                await served.hub.resume("no-such")
            with pytest.raises(UnknownConversation):
                await served.hub.require("no-such")

    asyncio.run(story())


def test_a_conversation_with_somebody_at_work_is_not_closed(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"hang": True}]})

    async def story() -> None:
        async with site(tmp_path, team) as served:
            opened = await served.hub.begin()
            await opened.conversation.say("Go.")
            while not opened.conversation.running:
                await asyncio.sleep(0.01)
            with pytest.raises(ReadOnlyHere, match="is working"):
                await served.hub.release(opened.conversation.id)

    asyncio.run(story())
