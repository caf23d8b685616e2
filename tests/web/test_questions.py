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
    assert "What it did" in page
    assert [steps.count(f"kim said {words}") for words in ("yes to max: touch a", "no to max: touch b (why)")] == [1, 1]
    assert "allow" not in steps, "what a rule answers at once is not shown"


async def asked(conversation: Conversation, command: str) -> list[tuple[str, str]]:
    async with asyncio.timeout(60):
        while command not in [one.question.command for one in conversation.approvals.open.values()]:
            await asyncio.sleep(0.01)
    return list(conversation.approvals.open)
