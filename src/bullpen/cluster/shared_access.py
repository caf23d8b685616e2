"""SharedAccess: who has access to the pages of all nodes, in the database; only nodes can read it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import psycopg

from bullpen.clock import sleep
from bullpen.cluster.bell import Bell, seldom_ring
from bullpen.cluster.database import GONE, Database, connect, in_sentences
from bullpen.errors import StoreUnreachable
from bullpen.store.postgres.address import read_address

CHANNEL = "bullpen_access"
LOOK_SECONDS = 3.0
"""How often to look even if nobody rings."""
MOST_SECONDS = 3
"""For a change: the event loop waits for it."""
CATCH_UP_SECONDS = 1.0
PAUSE_SECONDS = 0.1
"""Between two looks for those who show a key that is not known here."""
# A node that is frozen in the middle of a change must not keep all others from theirs.
TIMEOUTS = """
SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true)
"""


class SharedAccess:
    """The record of one cluster. It is read in the background, and written at once."""

    def __init__(self, url: str) -> None:
        self.url = url
        """The address of the database."""
        self._record = b""
        self._version = self._read_version = -1
        self.cluster = ""
        """The name of the cluster, which tells it from others."""
        self._database: Database | None = None
        self._looking = asyncio.Lock()
        self._looked_at = 0.0

    def __str__(self) -> str:
        return read_address(self.url).shown

    def read(self) -> bytes | None:
        """Return the record, if it is not the one that was read or written last."""
        if self._read_version == self._version:
            return None
        self._read_version = self._version
        return self._record

    def change(self, change: Callable[[bytes], bytes]) -> None:
        """Replace the record, or raise OSError; no other node does so meanwhile."""
        try:
            with self._connected() as connection:
                connection.execute(TIMEOUTS, [f"{MOST_SECONDS}s"] * 2)
                ((version, record),) = connection.execute("SELECT version, record FROM access FOR UPDATE").fetchall()
                changed = change(bytes(record))
                connection.execute("UPDATE access SET record = %s, version = version + 1", [changed])
                connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
        except (psycopg.Error, StoreUnreachable) as error:
            raise OSError(read_address(self.url).without_password(" ".join(str(error).split()))) from error
        self._take(version + 1, changed)
        self._read_version = self._version

    def look(self) -> None:
        """Read the record now."""
        with in_sentences(self.url), self._connected() as connection:
            ((cluster, version, record),) = connection.execute("SELECT cluster, version, record FROM access").fetchall()
        self.cluster = str(cluster)
        self._take(version, record)

    def urls(self) -> list[str]:
        """Return where people find the nodes that are alive."""
        query = "SELECT url FROM processes WHERE kind = 'node' AND ended_at IS NULL AND url <> '' ORDER BY id"
        with in_sentences(self.url), self._connected() as connection:
            return [str(row[0]) for row in connection.execute(query)]

    async def watch(self, database: Database, bell: Bell) -> None:
        """Know what other nodes change, until it is cancelled."""
        self._database = database
        with bell.waiting(CHANNEL) as ringing:
            while True:
                ringing.clear()
                with suppress(*GONE):
                    await self._look_in(database)
                await seldom_ring(ringing, LOOK_SECONDS)

    async def catch_up(self) -> bool:
        """Know what other nodes have changed up to now, if the server answers soon; return whether they have.

        It does not look too often: anybody may ask, and one look is for all who wait.
        """
        asked, known = monotonic(), self._version
        with suppress(TimeoutError, *GONE):
            async with asyncio.timeout(CATCH_UP_SECONDS), self._looking:
                if self._database is not None and self._looked_at < asked:
                    await sleep(self._looked_at + PAUSE_SECONDS - monotonic())
                    self._looked_at = monotonic()
                    await self._look_in(self._database)
        return self._version != known

    async def _look_in(self, database: Database) -> None:
        ((version, record),) = await database.once("SELECT version, record FROM access")
        self._take(version, record)

    def _take(self, version: int, record: bytes) -> None:
        # What was asked before a change of our own may be answered after it.
        if version > self._version:
            self._version, self._record = version, bytes(record)

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return connect(self.url, autocommit=False, connect_timeout=MOST_SECONDS)
