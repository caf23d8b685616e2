"""Who may answer what agents ask, and that pages show who did, from what is stored."""

import asyncio
import os
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import Stage

from bullpen.approvals import Answer
from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import site
from bullpen.testing.stage import write_team
from bullpen.web import page_feed
from bullpen.web.identity import Identity, Role

ASKS = 'permissions = "ask"\nallow = ["pytest"]'
YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="why")


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("member", 400), ("owner", 400)])
@pytest.mark.parametrize("action", ["yes", "no", "stop", "tell"])
def test_a_viewer_reads_and_does_not_answer(tmp_path: Path, role: Role, status: int, action: str) -> None:
    given = {"member": "max", "text": "hello"} if action == "tell" else {}

    async def ask() -> int:
        async with site(tmp_path, write_team(tmp_path, {"max": [{"say": "hi"}]})) as served:
            conversation = (await served.hub.begin()).conversation
            key = served.keys.new_token(Identity(role=role, person="kim"))
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx.AsyncClient(base_url=served.url, headers=headers, timeout=60) as client:
                return (await client.post(f"/api/conversations/{conversation.id}/{action}", json=given)).status_code

    # Who may answer is told that nothing is asked.
    assert asyncio.run(ask()) == status


def test_pages_show_who_answered_from_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    stage = Stage(tmp_path)
    stage.agent("max", [{"ask": "touch a"}, {"ask": "touch b"}, {"ask": "pytest"}], more=ASKS)

    async def story() -> tuple[str, str, str]:
        async with site(tmp_path, stage.team) as served, httpx.AsyncClient(base_url=served.url, timeout=60) as client:
            await client.post(served.new_url(), headers={"Origin": served.url})
            conversation = (await served.hub.begin()).conversation
            await conversation.say("@max go")
            for command, answer in (("touch a", YES), ("touch b", NO)):
                [(turn, question)] = await asked(conversation, command)
                live = (await client.get(f"/c/{conversation.id}")).text
                await conversation.answer(turn, question, answer, by="kim")
            await conversation.until_quiet()
            page = (await client.get(f"/c/{conversation.id}")).text
            return live, page, (await client.get(f"/c/{conversation.id}/steps/1")).text

    live, page, steps = asyncio.run(story())

    assert live.count("kim said yes to max: touch a") == 1
    head = live.partition('<article id="turn-1"')[2].partition("</header>")[0]
    assert ('class="now waits"' in head, '<span class="what">waits for you</span>' in head) == (True, True)
    assert "What it did" in page
    assert [steps.count(f"kim said {words}") for words in ("yes to max: touch a", "no to max: touch b (why)")] == [1, 1]
    assert "allow" not in steps, "what a rule answers at once is not shown"


def test_an_agent_that_asks_is_not_shown_as_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    # What is written is rendered at most once an hour, unless something follows it.
    monkeypatch.setattr(page_feed, "GROW_SECONDS", 3600.0)
    stage, seen = Stage(tmp_path), tmp_path / "seen"
    stage.agent(
        "max", [{"say": "I began, "}, {"wait_for": str(seen)}, {"say": "and now:"}, {"ask": "touch a"}], more=ASKS
    )

    async def story() -> bytes:
        async with site(tmp_path, stage.team) as served:
            opened = await served.hub.begin()
            with opened.feed.reading(None) as reader:
                await opened.conversation.say("@max go")
                frames = b""
                while b"I began" not in frames:
                    frames += b"".join(await reader.several())
                seen.touch()
                while b"waits for you" not in frames:
                    frames += b"".join(await reader.several())
                [(turn, question)] = await asked(opened.conversation, "touch a")
                await opened.conversation.answer(turn, question, NO, by="kim")
                await opened.conversation.until_quiet()
        return frames

    frames = asyncio.run(story())
    assert b"and now:" in frames.partition(b"waits for you")[0]


async def asked(conversation: Conversation, command: str) -> list[tuple[str, str]]:
    async with asyncio.timeout(60):
        while command not in [one.question.command for one in conversation.approvals.open.values()]:
            await asyncio.sleep(0.01)
    return list(conversation.approvals.open)
