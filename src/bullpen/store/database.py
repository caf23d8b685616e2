"""One connection to one file: checked when opened, locked while in use, its errors translated to ours."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from weakref import WeakSet

from bullpen.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from bullpen.store import files, schema, write_ahead_log
from bullpen.store.packing import DamagedData

BUSY_SECONDS = 10.0
# How many times to check a file that others change meanwhile.
TRIES = 10
# A large prompt makes the log grow; once its content is in the file, it is cut to this size again.
LOG_BYTES = 8 * 1024 * 1024

SETTINGS = f"""
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
PRAGMA cell_size_check = ON;
PRAGMA trusted_schema = OFF;
PRAGMA journal_size_limit = {LOG_BYTES};
"""

# Without waiting for the disk, except at the start of a log: if a power cut kept an old start, the rest of the old log
# would cover newer data in the file. Checkpoints are left to the writes that wait for the disk anyway.
NORMAL_SYNC = "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;"
FULL_SYNC = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000;"


# Closing a file releases all locks that its process has on it, also SQLite's: so we may read a file ourselves only
# while no connection to it is open in this process. https://www.sqlite.org/howtocorrupt.html (2.2)
_opening = Lock()
_open_here: "WeakSet[Database]" = WeakSet()


class Database:
    """A file of conversations that can be read and written. After damage is found, nothing is written any more."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock = Lock()
        self._damage = ""
        self._connection: Connection | None = None
        self._is_closed = False
        self._is_read_only = False
        self._inode: tuple[int, int] | None = None
        if not os.path.lexists(self.path):
            files.create_file(self.path, self._fill)
        self._connect()

    def reading(self) -> AbstractContextManager[Connection]:
        """Let the block see one state of the file, no matter what others write meanwhile."""
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[Connection]:
        """Let the block change the file: when it ends, everything is on disk, or nothing has changed."""
        self._check_writable()
        return self._transaction("BEGIN IMMEDIATE")

    def writing_without_sync(self) -> AbstractContextManager[Connection]:
        """Let the block change what does not matter after a power cut: others see it, and nobody waits for the disk.

        The next normal write puts it on disk.
        """
        self._check_writable()
        return self._transaction("BEGIN IMMEDIATE", NORMAL_SYNC, FULL_SYNC)

    def empty_log(self) -> None:
        """Remove from the log what was deleted from the file, as far as other processes and the disk allow."""
        with self._lock, suppress(sqlite3.Error, StoreError):
            self._open_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def stop_writing(self, reason: str) -> None:
        """Write nothing any more, because of damage. Closing then leaves the log as it is."""
        self._damage = self._damage or reason

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        with self._lock:
            self._is_closed = True
            self._disconnect()

    def _check_writable(self) -> None:
        if self._damage:
            raise StoreDamaged(self.path, self._damage)

    def _open_connection(self) -> Connection:
        if self._is_closed:
            raise ValueError("The store is closed.")
        if self._is_read_only:
            self._disconnect()
        return self._connection or self._connect()

    def _connect(self) -> Connection:
        with _opening:
            connection = self._connection = self._open()
            self._is_read_only = False
            self._inode = files.inode(self.path)
            _open_here.add(self)
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with _opening:
            if self._damage and files.has_log(self.path):
                self._close_without_writing(connection)
            connection.close()
            _open_here.discard(self)

    @contextmanager
    def _transaction(self, begin: str, before: str = "", after: str = "") -> Iterator[Connection]:
        with self._lock, self._translating():
            db = self._open_connection()
            if before:
                db.executescript(before)
            try:
                db.execute(begin)
                yield db
                db.execute("COMMIT")
            finally:
                # SQLite may have ended the transaction itself, on a full disk for example.
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if after:
                    db.executescript(after)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Turn SQLite's errors and damage into ours."""
        try:
            yield
        except (sqlite3.Error, DamagedData, UnicodeDecodeError) as error:
            raise self._remembered(store_error(self.path, error)) from error

    def _remembered(self, error: StoreError) -> StoreError:
        # Not the error itself: its traceback would keep the connection alive.
        if isinstance(error, StoreDamaged):
            self._damage = error.reason
        if isinstance(error, StoreReadOnly):
            # SQLite opens a file that it cannot write as read-only, also when the disk is full, and keeps it read-only.
            self._is_read_only = True
        return error

    def _fill(self, draft: Path) -> None:
        with self._translating(), closing(_connect(draft, "mode=rw")) as db:
            schema.build(db)

    def _open(self) -> Connection:
        """Return a connection to a sound file, or raise what is wrong with it, without writing a byte."""
        for _ in range(TRIES):
            seen = files.fingerprint(self.path)
            try:
                return self._open_checked()
            except StoreDamaged:
                # Another process may have been copying its log into the file, and we saw half of that.
                if files.fingerprint(self.path) == seen:
                    raise
                self._damage = ""
        raise StoreBusy(self.path)

    def _open_checked(self) -> Connection:
        has_log = files.has_log(self.path)
        if not self._is_open_here():
            files.check_file(self.path, schema.latest_version(), has_log=has_log)
            if has_log and (reason := write_ahead_log.damage(self.path)):
                raise StoreDamaged(self.path, reason)
        files.make_private(self.path)
        with self._translating(), ExitStack() as on_error:
            if has_log:
                # Closing a writable connection copies the log into the file, so a read-only one checks first.
                with closing(_connect(self.path, "mode=ro")) as reader:
                    self._check_tables(reader)
            db = on_error.enter_context(closing(_connect(self.path, "mode=rw")))
            self._check_tables(db)
            self._set_up(db)
            on_error.pop_all()
        return db

    def _is_open_here(self) -> bool:
        inode = files.inode(self.path)
        return inode is not None and any(other._inode == inode for other in _open_here)

    def _check_tables(self, db: Connection) -> None:
        # In one transaction, so that SQLite locks the file once and not for every table.
        db.execute("BEGIN")
        try:
            version = schema.version_of(db)
            if version > schema.latest_version():
                raise StoreTooNew(self.path, version, schema.latest_version())
            schema.check(db)
        finally:
            db.execute("ROLLBACK")

    def _set_up(self, db: Connection) -> None:
        if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreFailed(self.path, "SQLite cannot keep a write-ahead log on this file system")
        db.executescript(SETTINGS)
        schema.migrate(db)

    def _close_without_writing(self, connection: Connection) -> None:
        """Close, but leave the log as it is: the last connection to close copies it, unless that one is read-only."""
        with suppress(sqlite3.Error), closing(_connect(self.path, "mode=ro")) as reader:
            reader.execute("SELECT 1 FROM sqlite_master").fetchone()
            connection.close()


def _connect(path: Path, mode: str) -> Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def store_error(path: Path, error: Exception) -> StoreError:
    """Return an error of SQLite, or damage that we found ourselves, as an error for people."""
    # Without a code, it is from our own checks, or Python could not decode text in a column or an error message.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code in (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE):
        return StoreFull(path)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return StoreDamaged(path, "it is shorter than it should be")
    match code & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT:
            return StoreDamaged(path, str(error).rstrip("."))
        case sqlite3.SQLITE_FULL:
            return StoreFull(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return StoreReadOnly(path, f"or its folder is not writable ({error})")
        case _:
            return StoreFailed(path, str(error))
