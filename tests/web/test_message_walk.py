"""The way from a message in the browser to the reply on the page: which functions it takes, and how often the store."""

import asyncio
import re
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
import pytest

from bullpen.store.thread import StoreThread
from bullpen.testing.site import site
from bullpen.testing.stage import write_team

ROOT = Path(__file__).parents[2]
MOST_JOBS = 6
MOST_HOPS = 14
WAIT_SECONDS = 60


async def message_and_reply(folder: Path, watched: asyncio.Event | None = None) -> str:
    """Send a message as the page does; return everything that the page is sent until it is the person's turn again."""
    tool = {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "a.py"}}
    team = write_team(folder, {"max": [tool, {"say": "All done."}]})
    async with site(folder, team) as served, httpx.AsyncClient(base_url=served.url, timeout=60) as client:
        await client.post(served.new_url(), headers={"Origin": served.url})
        opened = await served.hub.begin()
        here = f"/c/{opened.conversation.id}"
        async with asyncio.timeout(WAIT_SECONDS), client.stream("GET", f"{here}/stream") as answer:
            lines = answer.aiter_lines()
            await anext(lines)
            if watched is not None:
                watched.set()
            headers = {"HX-Request": "true", "Origin": served.url}
            await client.post(f"{here}/messages", data={"text": "Go."}, headers=headers)
            shown = ""
            while not ("All done." in shown and "waits for you" in shown.rpartition("event: ended")[2]):
                shown += await anext(lines) + "\n"
        if watched is not None:
            watched.clear()
        return shown


def test_a_message_and_its_reply_take_at_most_six_jobs_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[str] = []
    original = StoreThread.do

    async def story() -> str:
        watched = asyncio.Event()

        async def counting(self: StoreThread, work: Any, *args: Any, **kwargs: Any) -> Any:
            if watched.is_set():
                jobs.append(work.__name__)
            return await original(self, work, *args, **kwargs)

        monkeypatch.setattr(StoreThread, "do", counting)
        return await message_and_reply(tmp_path, watched)

    shown = asyncio.run(story())

    assert "event: said" in shown
    assert "event: state" in shown
    # The message, what waits for a person in other conversations of the folder, the prompt, the beginning of the turn,
    # and the reply with the end of the turn.
    assert 0 < len(jobs) <= MOST_JOBS, jobs


def documented_walk() -> list[tuple[str, str]]:
    """Return the hops of one message in ARCHITECTURE.md: file and function."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("## The walk of one message")[2].partition("\n## ")[0]
    return re.findall(r"^\| \d+ \| `([\w/]+\.py)` `([\w.]+)` \|", table, re.MULTILINE)


def test_the_walk_of_a_message_in_the_docs_is_the_one_that_a_trace_shows(tmp_path: Path) -> None:
    calls: list[CodeType] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/src/bullpen/" in frame.f_code.co_filename:
            calls.append(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        asyncio.run(message_and_reply(tmp_path))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    called = [(code.co_filename.rpartition("/src/bullpen/")[2], code.co_qualname) for code in calls]
    start = called.index(("web/pages.py", "say"))

    walk = documented_walk()
    remaining = iter(called[max(0, start - 100) :])
    assert [hop for hop in walk if hop not in remaining] == []
    assert 5 < len(walk) <= MOST_HOPS
