"""The process of a conversation among programs that print keys: python -m tests.torture.secret_session FOLDER."""

import asyncio
import logging
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from unittest import mock

from bullpen import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError

SAMPLE_SECONDS = 0.003


async def main(folder: Path) -> None:
    """Let everybody take a turn; fail, retry, skip and cancel; write down all that those who watch learn."""
    async with open_team(folder / "project" / "team.toml") as conversation:
        with conversation.viewing(after=0) as viewer:
            for name in ("max", "cody", "tool", "sayer", "hanger", "quitter"):
                await conversation.say(f"Please. [NEXT: {name}]")
                await conversation.until_quiet()
                await _decide(conversation)
            await conversation.say("Once more. [NEXT: tool]")
            await conversation.until_quiet()
            with suppress(BullpenError):
                await conversation.retry()
                await conversation.until_quiet()
            await _decide(conversation)
            await _cancelled(conversation)
        (folder / "logs" / "news").write_text(
            "\n".join([repr(numbered.event) async for numbered in viewer]), encoding="utf-8", errors="replace"
        )
    print("the conversation is over")


async def _decide(conversation: Conversation) -> None:
    while conversation.undecided:
        await conversation.skip()
        await conversation.until_quiet()


async def _cancelled(conversation: Conversation) -> None:
    await conversation.say("Wait. [NEXT: hanger]")
    await asyncio.sleep(0.5)
    with suppress(BullpenError):
        await conversation.cancel()
    await conversation.until_quiet()
    await _decide(conversation)


def sample_command_lines(file: Path, over: threading.Event) -> None:
    """Write down the command line of every process that is seen."""
    seen: set[bytes] = set()
    while not over.wait(SAMPLE_SECONDS):
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                seen.add(process.read_bytes())
    file.write_bytes(b"\n".join(sorted(seen)))


def plant_fault() -> None:
    """Take the masking away."""
    mock.patch("bullpen.agents.runner.without_secrets", lambda text, environment: text).start()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    logging.basicConfig(filename=place / "logs" / "debug.log", level=logging.DEBUG, encoding="utf-8", errors="replace")
    if os.environ.get("BULLPEN_TORTURE_FAULT"):
        plant_fault()
    over = threading.Event()
    sampler = threading.Thread(target=sample_command_lines, args=(place / "logs" / "cmdlines", over))
    sampler.start()
    try:
        asyncio.run(main(place))
    finally:
        over.set()
        sampler.join()
