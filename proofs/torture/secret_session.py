"""The process of a conversation among programs that print keys: python -m proofs.torture.secret_session FOLDER."""

import asyncio
import logging
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.torture.with_mistake import plant

if TYPE_CHECKING:
    from bullpen.conversation.conversation import Conversation

SAMPLE_SECONDS = 0.003


async def main(folder: Path) -> None:
    """Let everybody take a turn; fail, retry, skip and cancel; write down all that those who watch learn."""
    from proofs.torture.secret_keys import CUTTERS

    from bullpen import open_team
    from bullpen.errors import BullpenError

    async with open_team(folder / "project" / "team.toml") as conversation:
        with conversation.viewing(after=0) as viewer:
            for name in ("max", "cody", "tool", "sayer", "hanger", "quitter", *CUTTERS):
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


async def _decide(conversation: "Conversation") -> None:
    while conversation.undecided:
        await conversation.skip()
        await conversation.until_quiet()


async def _cancelled(conversation: "Conversation") -> None:
    from bullpen.errors import BullpenError

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


if __name__ == "__main__":
    place = Path(sys.argv[1])
    logging.basicConfig(filename=place / "logs" / "debug.log", level=logging.DEBUG, encoding="utf-8", errors="replace")
    if mistake := os.environ.get("BULLPEN_TORTURE_FAULT"):
        plant(mistake, place / "logs")
    over = threading.Event()
    sampler = threading.Thread(target=sample_command_lines, args=(place / "logs" / "cmdlines", over))
    sampler.start()
    try:
        asyncio.run(main(place))
    finally:
        over.set()
        sampler.join()
