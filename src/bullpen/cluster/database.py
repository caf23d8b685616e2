"""Database: a few connections to PostgreSQL that come back by themselves, as those of every part of a cluster do."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, LiteralString, Self

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from bullpen.clock import sleep
from bullpen.cluster.schema import SCHEMA
from bullpen.store.postgres.address import KEEPALIVES, read_address
from bullpen.store.postgres.connections import store_error, unreachable

logger = logging.getLogger(__name__)

GONE = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction, PoolTimeout)
"""What is raised while the server is away, or another one is about to take its place and is still a replica."""
CONNECTION: Mapping[str, Any] = {
    "autocommit": True,
    "options": f"-c search_path={SCHEMA},pg_temp -c idle_in_transaction_session_timeout=10s",
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    **KEEPALIVES,
}
"""How to connect. A machine that is gone without a word must be noticed, also by those who only listen, and a process
that is frozen in a transaction must not lock others out."""
WAIT_SECONDS = 5.0
"""For a connection. The pool's own thirty are longer than anybody wants to wait."""
AGAIN_SECONDS = 0.3
AWAY_SECONDS = 1.0
"""How often to try to connect while the server is away. The pool's own pauses become so long that others would give us
up after it is back."""


def connect(url: str, **others: Any) -> "psycopg.Connection[tuple[Any, ...]]":
    """Return one connection that blocks, or raise StoreUnreachable."""
    try:
        return psycopg.connect(url, **{**CONNECTION, **others})
    except psycopg.Error as error:
        raise unreachable(read_address(url), error) from None


@contextmanager
def in_sentences(url: str) -> Iterator[None]:
    """Turn what PostgreSQL says into a StoreError."""
    try:
        yield
    except psycopg.Error as error:
        raise store_error(read_address(url), error) from error


def stop_if_cancelled() -> None:
    """Raise CancelledError if this task is told to stop: a pool or a query that is cancelled may say something else."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class Database:
    """A pool of connections. Everything that is done with it may be done again: keys make it happen once."""

    def __init__(self, url: str, *, most: int = 4, on_away: Callable[[bool], None] = lambda _: None) -> None:
        self.url = url
        self._is_away = False
        self._on_away = on_away
        """Is told when the server is away, and when it is back."""
        self._pool = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=most,
            timeout=WAIT_SECONDS,
            reconnect_timeout=AWAY_SECONDS,
            open=False,
            kwargs=dict(CONNECTION),
        )

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.close()

    async def once(self, query: LiteralString, *given: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query; raises one of GONE while the server is away."""
        try:
            # Who asks makes the pool connect again.
            async with self._pool.connection(AWAY_SECONDS if self._is_away else WAIT_SECONDS) as connection:
                cursor = await connection.execute(query, given)
                rows = [] if cursor.description is None else await cursor.fetchall()
        except GONE:
            stop_if_cancelled()
            self._noticed(is_away=True)
            raise
        self._noticed(is_away=False)
        return rows

    def _noticed(self, *, is_away: bool) -> None:
        if is_away != self._is_away:
            self._is_away = is_away
            self._on_away(is_away)

    async def do(self, query: LiteralString, *given: Any) -> Sequence[tuple[Any, ...]]:
        """Do the same, as soon as the server is there."""
        while True:
            try:
                return await self.once(query, *given)
            except GONE as error:
                logger.warning("database away error=%s", str(error).strip())
                await sleep(AGAIN_SECONDS)
