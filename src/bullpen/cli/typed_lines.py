"""Lines from a standard input that is no terminal. A line that ends in a backslash goes on in the next one."""

import asyncio
import sys
from collections.abc import AsyncIterator
from threading import Thread
from typing import Any

CONTINUES = "\\"


async def typed_lines(leaving: "asyncio.Future[None]") -> AsyncIterator[str]:
    """Yield what comes until the end of the input, or until somebody wants to leave."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line.decode(errors="replace").rstrip("\r\n"))
        loop.call_soon_threadsafe(lines.put_nowait, None)

    # A thread of our own that nobody waits for: it may sit in a read that never ends.
    Thread(target=read, daemon=True, name="bullpen-stdin").start()
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
