"""A few connections that are used in turns. Each transaction is one pipeline, so that it takes two round trips.

What is asked in a pipeline is sent at once, and waits only when its answer is read: ask for everything first.
"""

import logging
import os
import select
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import BoundedSemaphore, Lock, local
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg import Connection, Cursor, Pipeline, errors
from psycopg.sql import Composed

from bullpen.errors import (
    StoreBusy,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    StoreUncertain,
    StoreUnreachable,
)
from bullpen.store.packing import DamagedData
from bullpen.store.postgres import text
from bullpen.store.postgres.address import Address

logger = logging.getLogger(__name__)

Row = tuple[Any, ...]
Session = Connection[Row]
Values = Sequence[object] | Mapping[str, object] | None

MOST_CONNECTIONS = 8
BUSY_SECONDS = 10.0
UNSURE_SECONDS = 15.0
"""How long to look whether the server has committed what it was asked to when it was lost."""
AGAIN_SECONDS = 0.2

# A process that is stopped in the middle of a transaction would lock others out of its conversation: the server ends
# it. What is acknowledged is on disk, even if the server's settings say otherwise.
SETTINGS = f"""
SELECT set_config('lock_timeout', '{BUSY_SECONDS:.0f}s', false),
    set_config('idle_in_transaction_session_timeout', '{BUSY_SECONDS:.0f}s', false),
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
        false)
"""

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
NO_SYNC = "SET LOCAL synchronous_commit = off"

DAMAGED = "Nothing more is written to it from here. See what is wrong with pg_amcheck, and use a backup."
FAILED = "Try again; the server's log says more."

_all: "WeakSet[Connections]" = WeakSet()


class Db:
    """A session in a transaction, which is one pipeline."""

    def __init__(self, session: Session, pipeline: Pipeline) -> None:
        self._session = session
        self._pipeline = pipeline
        self.kept: dict[str, object] = {}
        """What is known of conversations until the transaction ends."""
        self.evidence: tuple[str, Values] | None = None
        """What to ask to know whether the transaction was committed."""

    @property
    def server_version(self) -> int:
        """The major version of the server."""
        return self._session.info.server_version // 10_000

    @property
    def is_lost(self) -> bool:
        """Whether the connection to the server is lost."""
        return self._session.closed

    def execute(self, query: str | bytes | Composed, values: Values = None, *, binary: bool = False) -> Cursor[Row]:
        """Ask something. The answer is waited for when it is read."""
        return self._session.execute(query, values, binary=binary)

    def settle(self, answer: Cursor[Row]) -> Cursor[Row]:
        """Return an answer that is there: if it is not, wait for all that was asked.

        Only then does the server measure how long we think, and end the transaction if that is too long.
        """
        if answer.pgresult is None:
            self._pipeline.sync()
        return answer


class Connections:
    """Connections to one database. All methods may be called from any thread.

    After damage is found, nothing is written any more.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = Lock()
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        self._idle: list[Session] = []
        self._open: WeakSet[Session] = WeakSet()
        self._is_closed = False
        self._damage = ""
        self._together = local()
        _all.add(self)

    def connect(self) -> Session:
        """Return a new connection, or raise StoreUnreachable."""
        parameters: dict[str, Any] = {**self.address.parameters}
        try:
            connection = psycopg.connect(autocommit=True, **parameters)
        except psycopg.Error as error:
            raise unreachable(self.address, error) from None
        self._open.add(connection)
        text.prepare(connection)
        try:
            connection.execute(SETTINGS)
        except psycopg.Error as error:
            connection.close()
            raise unreachable(self.address, error) from None
        return connection

    def reading(self) -> AbstractContextManager[Db]:
        """Let the block see one state of the database, no matter what others write meanwhile."""
        shared: Db | None = getattr(self._together, "db", None)
        return self._transaction(READ) if shared is None else nullcontext(shared)

    @contextmanager
    def reading_together(self) -> Iterator[None]:
        """Let all that this thread reads in the block be one transaction."""
        with self.reading() as db:
            before = getattr(self._together, "db", None)
            self._together.db = db
            try:
                yield
            finally:
                self._together.db = before

    def writing(self, *, synced: bool = True) -> AbstractContextManager[Db]:
        """Let the block change the database: when it ends, everything is stored, or nothing has changed.

        What is not synced, others see at once, but a crash of the server may lose it.
        """
        if self._damage:
            raise StoreDamaged(self.address.shown, self._damage, DAMAGED)
        return self._transaction(WRITE, *(() if synced else (NO_SYNC,)))

    def stop_writing(self, reason: str) -> None:
        """Write nothing any more, because of damage."""
        self._damage = self._damage or reason

    def close(self) -> None:
        """Close all connections that nobody uses. Closing twice is harmless."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _transaction(self, *begin: str) -> Iterator[Db]:
        end: tuple[Db, Cursor[Row]] | None = None
        with self._used() as session, self.translating():
            try:
                with session.pipeline() as pipeline:
                    db = Db(session, pipeline)
                    for statement in begin:
                        db.execute(statement)
                    yield db
                    end = db, db.execute("COMMIT")
            except BaseException as error:
                # If it is lost, the server rolls back.
                with suppress(psycopg.Error):
                    session.rollback()
                if not isinstance(error, psycopg.Error) or end is None or not self._is_committed(*end):
                    raise
                logger.warning("stored all the same error=%s", self.address.without_password(str(error)))

    def _is_committed(self, db: Db, commit: Cursor[Row]) -> bool:
        """Return whether a transaction was committed although there was an error while we waited for that.

        StoreUncertain is raised if the server cannot be asked.
        """
        if commit.pgresult is not None or db.evidence is None or not db.is_lost:
            return commit.statusmessage == "COMMIT"
        until = monotonic() + UNSURE_SECONDS
        while monotonic() < until:
            with suppress(psycopg.Error, StoreUnreachable), self.connect() as connection:
                return connection.execute(*db.evidence).fetchone() == (True,)
            sleep(AGAIN_SECONDS)
        raise StoreUncertain(self.address.shown, "it has not come back since")

    @contextmanager
    def _used(self) -> Iterator[Session]:
        if not self._free.acquire(timeout=BUSY_SECONDS):
            raise StoreBusy(self.address.shown)
        try:
            db = self._take() or self.connect()
            try:
                yield db
            finally:
                self._put_back(db)
        finally:
            self._free.release()

    def _take(self) -> Session | None:
        """Return a connection that is not in use and was not lost."""
        with self._lock:
            if self._is_closed:
                raise ValueError("The store is closed.")
            while self._idle:
                db = self._idle.pop()
                if is_usable(db):
                    return db
                db.close()
        return None

    def _put_back(self, db: Session) -> None:
        is_idle = not db.closed and db.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if is_idle and not self._is_closed:
                self._idle.append(db)
                return
        db.close()

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turn PostgreSQL's errors and damage into ours."""
        try:
            yield
        except (psycopg.Error, DamagedData) as error:
            ours = store_error(self.address, error)
            if isinstance(ours, StoreDamaged):
                self.stop_writing(ours.reason)
            raise ours from error

    def forget(self) -> None:
        """In a forked child: do not keep the connections of the parent open, whose locks would outlive it."""
        self._lock, self._free, self._idle = Lock(), BoundedSemaphore(MOST_CONNECTIONS), []
        for connection in list(self._open):
            if not connection.closed:
                os.close(connection.fileno())
        self._open = WeakSet()
        self._together = local()


def is_usable(db: Session) -> bool:
    """Return whether a connection is open; what the server says unasked is that it is not any more."""
    if db.closed:
        return False
    poll = select.poll()
    poll.register(db.fileno(), select.POLLIN)
    return not poll.poll(0)


def unreachable(address: Address, error: psycopg.Error) -> StoreUnreachable:
    """Return why there is no connection, in one line and without the password."""
    reason = address.without_password(" ".join(str(error).split())).removeprefix("connection failed: ")
    has_answered = "FATAL:" in reason
    # What the library asks then, our sentence asks, too.
    reason = reason.rpartition("FATAL: ")[2].partition(" Is the server running")[0].rstrip(".")
    return StoreUnreachable(address.shown, reason, has_answered=has_answered)


def store_error(address: Address, error: Exception) -> Exception:
    """Return an error of PostgreSQL, or damage that we found ourselves, as an error for people."""
    reason = address.without_password(" ".join(str(error).split())).rstrip(".")
    match error:
        case DamagedData() | errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreDamaged(address.shown, reason, DAMAGED)
        case errors.LockNotAvailable() | errors.DeadlockDetected() | errors.QueryCanceled():
            return StoreBusy(address.shown)
        case errors.DiskFull():
            return StoreFull(address.shown)
        case errors.ReadOnlySqlTransaction() | errors.InsufficientPrivilege():
            return StoreReadOnly(address.shown, f"cannot be written: {reason}")
        case errors.ProgramLimitExceeded() | errors.NumericValueOutOfRange():
            return ValueError(f"PostgreSQL cannot store this: {reason}.")
        case errors.OperatorIntervention() | psycopg.OperationalError(sqlstate=None):
            return StoreUnreachable(address.shown, reason, has_answered=False)
        case _:
            return StoreFailed(address.shown, reason, FAILED)


def _after_fork_in_child() -> None:
    for connections in list(_all):
        connections.forget()


os.register_at_fork(after_in_child=_after_fork_in_child)
