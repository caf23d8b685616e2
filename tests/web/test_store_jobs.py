"""How often the database is used on the way from a message in the browser to the reply on the page."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from bullpen.store.thread import StoreThread
from bullpen.testing.site import site
from bullpen.testing.stage import write_team

MOST_JOBS = 5
WAIT_SECONDS = 30


def test_a_message_and_its_reply_take_at_most_five_jobs_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[str] = []
    original = StoreThread.do

    async def counting(self: StoreThread, work: Any, *args: Any, **kwargs: Any) -> Any:
        jobs.append(work.__name__)
        return await original(self, work, *args, **kwargs)

    async def story() -> str:
        tool = {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "a.py"}}
        team = write_team(tmp_path, {"max": [tool, {"say": "All done."}]})
        async with site(tmp_path, team) as served, httpx.AsyncClient(base_url=served.url, timeout=20) as client:
            await client.get(served.new_url(), follow_redirects=True)
            opened = await served.hub.begin()
            here = f"/c/{opened.conversation.id}"
            async with asyncio.timeout(WAIT_SECONDS), client.stream("GET", f"{here}/stream") as answer:
                lines = answer.aiter_lines()
                # The page is connected.
                await anext(lines)
                monkeypatch.setattr(StoreThread, "do", counting)
                await client.post(
                    f"{here}/messages", data={"text": "Go."}, headers={"HX-Request": "true", "Origin": served.url}
                )
                shown = ""
                # Until the side of the page says that it is the person's turn again.
                while not ("All done." in shown and "your turn" in shown.rpartition("event: ended")[2]):
                    shown += await anext(lines) + "\n"
            monkeypatch.undo()
            return shown

    shown = asyncio.run(story())

    assert "event: said" in shown
    assert "event: state" in shown
    # say, the prompt, the turn's beginning, the reply with the turn's end.
    assert 0 < len(jobs) <= MOST_JOBS, jobs
