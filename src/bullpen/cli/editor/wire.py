"""Wire: lines of JSON from and to an editor, read and written in threads, so that a slow editor delays no agent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

import msgspec

from bullpen.cli.editor.handshake import Met
from bullpen.cli.editor.lines import read_some, write_all

MOST_UNSENT = 1024 * 1024
"""Bytes that may wait to be written; who sends more waits."""
MOST_UNHEARD = 100
"""Lines that may wait to be handled; the editor waits then."""
FINISH_SECONDS = 2.0
"""For what is not written when we leave."""


class Wire:
    """One connection. Only for the event loop's thread."""

    def __init__(self, source: int, target: int, met: Met) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_UNHEARD)
        self._unwritten: SimpleQueue[bytes | None] = SimpleQueue()
        self._unsent = 0
        self._has_room = asyncio.Event()
        self._is_over = asyncio.Event()
        # Threads of our own that nobody waits for: each may be in a call that never ends.
        Thread(target=self._read, args=(source, met), daemon=True, name="bullpen-editor-in").start()
        Thread(target=self._write, args=(target,), daemon=True, name="bullpen-editor-out").start()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield what the editor says, until it closes its end."""
        while (line := await self._lines.get()) is not None:
            yield line

    async def send(self, message: object) -> None:
        """Send a message. If the editor has gone, nothing happens."""
        if self._is_over.is_set():
            return
        data = msgspec.json.encode(message) + b"\n"
        self._unsent += len(data)
        self._unwritten.put(data)
        while self._unsent > MOST_UNSENT and not self._is_over.is_set():
            self._has_room.clear()
            await self._has_room.wait()

    async def finish(self) -> None:
        """Write what is left, unless the editor does not take it."""
        self._unwritten.put(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                await self._is_over.wait()

    def _read(self, source: int, met: Met) -> None:
        def hand_over(line: bytes | None) -> None:
            putting = self._lines.put(line)
            try:
                asyncio.run_coroutine_threadsafe(putting, self._loop).result()
            except RuntimeError:
                putting.close()
                raise

        # The loop may be closed by now.
        with suppress(RuntimeError):
            for line in met.unheard:
                hand_over(line)
            while data := read_some(source):
                for line in met.lines.feed(data):
                    hand_over(line)
            hand_over(None)

    def _write(self, target: int) -> None:
        with suppress(RuntimeError):
            while (data := self._unwritten.get()) is not None and write_all(target, data):
                self._loop.call_soon_threadsafe(self._sent, len(data))
            self._loop.call_soon_threadsafe(self._over)

    def _sent(self, size: int) -> None:
        self._unsent -= size
        self._has_room.set()

    def _over(self) -> None:
        self._is_over.set()
        self._has_room.set()
