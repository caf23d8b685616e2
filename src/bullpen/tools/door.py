"""A turn's door: the private socket through which the MCP servers of its CLI reach the conversation."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import msgspec

from bullpen.callers import caller
from bullpen.tools.calls import Answer, Call

logger = logging.getLogger(__name__)

SERVER = str(Path(__file__).with_name("mcp.py"))
"""Run as a file, which takes a third less time than as a module."""
Answering = Callable[[Call], Awaitable[Answer]]
MayUse = Callable[[int, str], bool]
"""Gets the number of a process, and the path of the socket."""
LONGEST_LINE = 4 * 1024 * 1024
LONGEST_PATH = 100
"""What a system takes as the path of a socket, in bytes, and a little less."""
BACKLOG = 1
"""Others wait. The loop of asyncio logs a traceback for each place in it when no file descriptor is left."""
MOST_VISITORS = 16
"""Of one turn at once: a CLI starts one server, or one for each of its helpers."""
MOST_AT_ONCE = 16
TOO_MANY = "Too many calls at once. Wait for the answers first."


@asynccontextmanager
async def open_door(answering: Answering, may_use: MayUse = lambda *_: True) -> AsyncIterator[tuple[str, ...]]:
    """Answer calls in the block, and yield the command of the MCP server that makes them; nothing: it is not possible.

    The folder of the socket is readable for this user alone, and each turn has a socket of its own. The agents of other
    turns run as the same user: `may_use` says whether a process may use it.
    """
    import tempfile

    with ExitStack() as stack:
        try:
            made = tempfile.TemporaryDirectory(prefix="bullpen-", ignore_cleanup_errors=True)
        except OSError as error:
            logger.warning("no tools error=%s", error)
            yield ()
            return
        path = Path(stack.enter_context(made), "tools")
        if len(os.fsencode(path)) > LONGEST_PATH:
            logger.warning("no tools: the path of their socket would be too long path=%s", path)
            yield ()
            return
        visitors: set[asyncio.Task[None]] = set()

        def come_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            pid = caller(writer.get_extra_info("socket"))
            if pid is None or not may_use(pid, str(path)):
                logger.warning("a process was refused at the tools of a turn pid=%s", pid or "unknown")
                writer.close()
                return
            if len(visitors) >= MOST_VISITORS:
                logger.warning("more than %d processes use the tools of a turn", MOST_VISITORS)
                writer.close()
                return
            task = asyncio.create_task(_Visitor(answering, writer).stay(reader))
            visitors.add(task)
            task.add_done_callback(visitors.discard)
            # A task that is cancelled before it begins runs nothing of its own.
            task.add_done_callback(lambda _: writer.close())

        server = await asyncio.start_unix_server(come_in, path, limit=LONGEST_LINE, backlog=BACKLOG)
        try:
            # Not from the folder in which the CLI works: it may have a bullpen of its own.
            yield (sys.executable, "-P", SERVER, str(path))
        finally:
            server.close()
            for task in visitors:
                task.cancel()
            await asyncio.gather(*visitors, return_exceptions=True)


class _Visitor:
    """One MCP server."""

    def __init__(self, answering: Answering, writer: asyncio.StreamWriter) -> None:
        self._answering = answering
        self._writer = writer
        self._open: dict[int, asyncio.Task[None]] = {}

    async def stay(self, reader: asyncio.StreamReader) -> None:
        """Answer until it leaves, or writes what nobody understands."""
        try:
            with suppress(OSError, ValueError, msgspec.MsgspecError):
                while line := await reader.readline():
                    self._hear(msgspec.json.decode(line, type=Call))
                    # Who does not read what it is told is not heard any more.
                    await self._writer.drain()
        finally:
            for task in self._open.values():
                task.cancel()
            await asyncio.gather(*self._open.values(), return_exceptions=True)

    def _hear(self, call: Call) -> None:
        if not call.tool:
            if (task := self._open.get(call.id)) is not None:
                task.cancel()
        elif call.id in self._open or len(self._open) >= MOST_AT_ONCE:
            self._send(Answer(id=call.id, text=TOO_MANY, is_error=True))
        else:
            task = self._open[call.id] = asyncio.create_task(self._answer(call))
            task.add_done_callback(lambda _: self._open.pop(call.id, None))

    async def _answer(self, call: Call) -> None:
        self._send(await self._answering(call))
        with suppress(OSError):
            await self._writer.drain()

    def _send(self, answer: Answer) -> None:
        if not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(answer) + b"\n")
