"""Telling: a worker tells the owner of a turn what the agent says, by the best way there is."""

import asyncio
from contextlib import suppress
from itertools import islice
from typing import LiteralString

import msgspec

from bullpen.clock import sleep
from bullpen.cluster.database import Database
from bullpen.cluster.lines import Hello, line_to
from bullpen.cluster.turn_log import Line, TurnLog

AGAIN_SECONDS = 0.2
"""Before an owner is called again that did not want to hear, or that nobody knows."""
DATABASE_SECONDS = 10.0
"""How long lines go through the database before a connection is tried again."""
BATCH_SECONDS = 0.05
BATCH = 200


class Telling:
    """The lines of one turn, on their way."""

    def __init__(
        self, database: Database, worker: int, key: tuple[str, str], listener: tuple[str, str] | None = None
    ) -> None:
        """Tell who listens; if that is not known, it is looked up."""
        self.log = TurnLog()
        self._database = database
        self._worker = worker
        self._key = key
        self._listener = listener
        self._more = asyncio.Event()
        self._left = 0
        """The last line that was left in the database."""

    def add(self, line: Line) -> None:
        """Tell a line, as soon as possible."""
        self.log.add(line)
        self._more.set()

    async def tell(self) -> None:
        """Tell all lines as they come, until it is cancelled. A new owner hears all of them."""
        known = self._listener
        while True:
            listener, known = known or await self._owner(), None
            try:
                if listener is not None:
                    address, token = listener
                    await self._connected(address, Hello(*self._key, token))
            except (EOFError, msgspec.MsgspecError):
                pass
            except (OSError, ValueError):
                # TimeoutError is one, too. ValueError: it has no address at all.
                await self._through_database()
                continue
            await sleep(AGAIN_SECONDS)

    async def _owner(self) -> tuple[str, str] | None:
        query: LiteralString = "SELECT address, token FROM listener_of(%s, %s, %s)"
        rows = await self._database.do(query, self._worker, *self._key)
        return (rows[0][0], rows[0][1]) if rows else None

    async def _connected(self, address: str, hello: Hello) -> None:
        async with line_to(address, hello) as line:
            closed = asyncio.ensure_future(line.closed())
            closed.add_done_callback(lambda _: self._more.set())
            try:
                while not closed.done():
                    self._more.clear()
                    await line.tell(self.log.after(line.has))
                    if line.has == self.log.count and not closed.done():
                        await self._more.wait()
            finally:
                closed.cancel()

    async def _through_database(self) -> None:
        """Leave lines in the database for a while, also those that are there already."""
        self._more.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(DATABASE_SECONDS):
                while True:
                    await self._more.wait()
                    await sleep(BATCH_SECONDS)
                    self._more.clear()
                    await self._leave()
                    while self._left < self.log.count:
                        await self._leave()

    async def _leave(self) -> None:
        """Leave the next lines, if there are any; all of them again, if a crash of the server has lost them."""
        batch = [line for _, line in islice(self.log.after(self._left), BATCH)]
        query: LiteralString = "SELECT leave_lines(%s, %s, %s, %s, %s)"
        ((has_first,),) = await self._database.do(query, self._worker, *self._key, self._left + 1, batch)
        # Without an answer, nobody wants them any more.
        self._left = 0 if has_first is False and self._left else self._left + len(batch)
