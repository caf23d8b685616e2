"""Lines from a standard input that is not a terminal. A line that ends in a backslash continues in the next one."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from threading import Thread
from typing import Any

CONTINUES = "\\"
READ_BYTES = 64 * 1024


async def typed_lines(leaving: "asyncio.Future[None]") -> AsyncIterator[str]:
    """Yield what comes until the end of the input, or until somebody wants to leave."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def take(line: str | None) -> None:
        # The conversation may be over, and its loop with it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lines.put_nowait, line)

    # A thread of our own that nobody waits for: it may sit in a read that never ends.
    Thread(target=_read, args=(sys.stdin.fileno(), take), daemon=True, name="bullpen-stdin").start()
    block: list[str] = []
    while not leaving.done():
        line = asyncio.ensure_future(lines.get())
        waited_for: list[asyncio.Future[Any]] = [line, leaving]
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            line.cancel()
            return
        text = line.result()
        if text is not None and text.endswith(CONTINUES):
            block.append(text.removesuffix(CONTINUES))
        elif text is not None or block:
            yield "\n".join([*block, text or ""])
            block = []
        if text is None:
            return


def _read(file: int, take: Callable[[str | None], None]) -> None:
    """Hand over lines, and None at the end. Not by way of sys.stdin: its lock would keep Python from ending."""
    unfinished = b""
    while data := _some(file):
        *whole, unfinished = (unfinished + data).split(b"\n")
        for line in whole:
            take(line.decode(errors="replace").removesuffix("\r"))
    if unfinished:
        take(unfinished.decode(errors="replace"))
    take(None)


def _some(file: int) -> bytes:
    try:
        return os.read(file, READ_BYTES)
    except OSError:
        return b""
