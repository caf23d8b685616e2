"""Node: a process that has turns run by workers: it hears lines, waits for outcomes, and gives up the dead."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, LiteralString

from msgspec import Struct
from psycopg.conninfo import make_conninfo

from bullpen.cluster.announcing import Announcement, read_announcement
from bullpen.cluster.bell import Bell, seldom_ring
from bullpen.cluster.database import GONE, Database
from bullpen.cluster.doing import doing
from bullpen.cluster.lines import Hearing, Listeners
from bullpen.cluster.membership import Member, Process, joined, reap_for_ever
from bullpen.cluster.outcomes import CHANNEL, Outcome, outcome_of
from bullpen.cluster.schema import prepare
from bullpen.cluster.shared_access import CHANNEL as ACCESS
from bullpen.store.postgres.store import PostgresStore

logger = logging.getLogger(__name__)

LINES = "bullpen_lines"
PROCESSES = "bullpen_processes"
LOOK_SECONDS = 5.0


class KnownWorker(Struct, frozen=True):
    """A worker that lives."""

    name: str
    pools: tuple[str, ...]
    announced: Announcement


class Node:
    """One process that owns conversations, as a part of a cluster."""

    def __init__(self, database: Database, bell: Bell, listeners: Listeners, member: Member) -> None:
        self.database = database
        self.bell = bell
        self.member = member
        self._listeners = listeners
        self._soon: set[asyncio.Task[None]] = set()
        self._workers: list[KnownWorker] = []

    @property
    def id(self) -> int:
        """Which process of the cluster it is."""
        return self.member.id

    def open_store(self) -> PostgresStore:
        """Open the store of its conversations. Its sessions are ended when this node is given up, if it froze."""
        return PostgresStore(make_conninfo(self.database.url, application_name=f"bullpen node {self.id}"))

    def workers(self, pool: str) -> list[KnownWorker]:
        """Return the workers of a pool, as far as is known."""
        return [worker for worker in self._workers if pool in worker.pools]

    def announced(self, pool: str) -> list[Announcement]:
        """Return what the workers of a pool have announced."""
        return [worker.announced for worker in self.workers(pool)]

    def has_worker(self, pool: str) -> bool:
        """Return whether some worker serves a pool, as far as is known."""
        return bool(self.announced(pool))

    def do_soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.create_task(work)
        self._soon.add(task)
        task.add_done_callback(self._soon.discard)

    async def finish(self) -> None:
        """Wait for a while until all that is done."""
        if self._soon:
            await asyncio.wait(self._soon, timeout=LOOK_SECONDS)
        for task in self._soon:
            task.cancel()

    async def outcome(self, key: tuple[str, str], hearing: Hearing) -> Outcome:
        """Hear the lines of a turn, and return how it ended."""
        with self._listeners.hearing(key, hearing):
            reading = asyncio.create_task(self._read_lines(key, hearing))
            try:
                outcome = await outcome_of(self.database, self.bell, key)
            finally:
                reading.cancel()
        await hearing.hear_rest(outcome.result.log)
        return outcome

    async def _read_lines(self, key: tuple[str, str], hearing: Hearing) -> None:
        """Read the lines of a turn that its worker leaves in the database."""
        query: LiteralString = (
            "SELECT number, line FROM lines WHERE conversation = %s AND turn = %s AND number > %s ORDER BY number"
        )
        with self.bell.waiting(LINES, payload=" ".join(key)) as ringing:
            if hearing.is_adopted:
                ringing.set()
            while True:
                await ringing.wait()
                ringing.clear()
                for number, line in await self.database.do(query, *key, hearing.heard):
                    hearing.hear(number, line)

    async def look_at_workers(self) -> None:
        """Find out which workers there are; one of GONE is raised while the server is away."""
        query: LiteralString = "SELECT name, pools, announced FROM processes WHERE kind = 'worker' AND ended_at IS NULL"
        rows = await self.database.once(query)
        self._workers = [KnownWorker(name, tuple(pools), read_announcement(data)) for name, pools, data in rows]

    async def watch_workers(self) -> None:
        """Know which workers there are, until it is cancelled."""
        with self.bell.waiting(PROCESSES) as ringing:
            while True:
                ringing.clear()
                with suppress(*GONE):
                    await self.look_at_workers()
                await seldom_ring(ringing, LOOK_SECONDS)


@asynccontextmanager
async def open_node(url: str, *, name: str, host: str = "127.0.0.1") -> AsyncIterator[Node]:
    """Take part in a cluster as a node."""
    await asyncio.to_thread(prepare, url)
    bell, listeners = Bell(url, CHANNEL, LINES, PROCESSES, ACCESS), Listeners()
    async with Database(url) as database, listeners.serving(host) as port:
        process = Process(kind="node", name=name, address=f"{host}:{port}")
        async with joined(database, bell, process) as member:
            node = Node(database, bell, listeners, member)
            await node.look_at_workers()
            async with doing(partial(reap_for_ever, database, member.id), node.watch_workers):
                try:
                    yield node
                finally:
                    await node.finish()
