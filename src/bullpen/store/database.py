"""One connection to one file: checked when opened, locked while in use, its errors translated to ours."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from copy import copy
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

from bullpen.errors import (
    LogLost,
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
from bullpen.store.write_ahead_log import OpenLog

if TYPE_CHECKING:
    from bullpen.store.read_only import Reader

BUSY_SECONDS = 10.0
WAIT_SECONDS = 0.01
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

CUT_LOG = "its log was cut off while it was open"

# Without waiting for the disk, except at the start of a log: if a power cut kept an old start, the rest of the old log
# would cover newer data in the file. Checkpoints are left to the writes that wait for the disk anyway.
NORMAL_SYNC = "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;"
FULL_SYNC = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000;"


# Closing a file releases all locks that its process has on it, also SQLite's: so we may read a file ourselves only
# while no connection to it is open in this process. https://www.sqlite.org/howtocorrupt.html (2.2)
_opening = Lock()
_open_here: "WeakSet[Database]" = WeakSet()


class Database:
    """A file of conversations that can be read, and written if it lies where one can write.

    After damage is found, nothing is written any more.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock = Lock()
        self._damage = ""
        self._connection: Connection | None = None
        self._is_closed = False
        self._reader: Reader | None = None
        """What the connection is from, if the file can only be read."""
        self._refusal: StoreError | None = None
        """Why the file can only be read."""
        self._is_spoiled = False
        """Whether the connection must not be used again."""
        self._inode: tuple[int, int] | None = None
        self._log: OpenLog | None = None
        if not os.path.lexists(self.path):
            self._check_no_log()
            files.create_file(self.path, self._fill)
        self._connect()

    def reading(self) -> AbstractContextManager[Connection]:
        """Let the block see one state of the file, no matter what others write meanwhile."""
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[Connection]:
        """Let the block change the file: when it ends, everything is on disk, or nothing has changed."""
        self._check_writable()
        return self._transaction("BEGIN IMMEDIATE", to_write=True)

    def writing_without_sync(self) -> AbstractContextManager[Connection]:
        """Let the block change what does not matter after a power cut: others see it, and nobody waits for the disk.

        The next normal write puts it on disk.
        """
        self._check_writable()
        return self._transaction("BEGIN IMMEDIATE", NORMAL_SYNC, FULL_SYNC, to_write=True)

    def empty_log(self) -> None:
        """Remove from the log what was deleted from the file, as far as other processes and the disk allow."""
        with self._lock, suppress(sqlite3.Error, StoreError):
            self._open_connection(to_write=True).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

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

    def _open_connection(self, *, to_write: bool) -> Connection:
        if self._is_closed:
            raise ValueError("The store is closed.")
        if self._is_spoiled or self._has_changed() or (to_write and self._refusal is not None):
            self._disconnect()
        if to_write:
            self._check_log()
        connection = self._connection or self._connect(to_write=to_write)
        if to_write and self._refusal is not None:
            raise copy(self._refusal)
        return connection

    def _check_log(self) -> None:
        """Before a write, look whether somebody has taken away the log that it would go to."""
        if self._connection is None or self._log is None:
            return
        match self._log.state():
            case "removed":
                # Closing puts what was in it into the file.
                self._disconnect()
            case "cut":
                self._damage = CUT_LOG
                self._check_writable()
            case "empty":
                # This finds out whether there should be something in it; usually there is nothing yet.
                self._connection.execute("PRAGMA wal_checkpoint").fetchone()
            case "usual":
                pass

    def _has_changed(self) -> bool:
        return self._reader is not None and self._reader.has_changed()

    def _is_torn(self) -> bool:
        """Return whether we may have read half of a change."""
        return self._reader is not None and not self._reader.is_copy and self._reader.has_changed()

    def _connect(self, *, to_write: bool = False) -> Connection:
        with _opening:
            try:
                connection, self._reader, self._refusal = self._open(to_write=to_write), None, None
            except (StoreReadOnly, StoreFull) as error:
                connection, self._refusal = self._open_to_read(error), copy(error)
            self._connection, self._is_spoiled = connection, False
            with suppress(OSError):
                self._log = None if self._reader else OpenLog(files.log_of(self.path))
            self._inode = files.inode(self.path)
            _open_here.add(self)
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with _opening:
            if self._log is not None and self._log.state() == "cut":
                self._damage = self._damage or CUT_LOG
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            elif self._damage and files.has_log(self.path):
                self._close_without_writing(connection)
            connection.close()
            if self._log is not None:
                self._log.close()
                self._log = None
            _open_here.discard(self)

    @contextmanager
    def _transaction(
        self, begin: str, before: str = "", after: str = "", *, to_write: bool = False
    ) -> Iterator[Connection]:
        with self._lock, self._translating():
            db = self._open_connection(to_write=to_write)
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
            if self._is_torn():
                raise StoreBusy(self.path)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Turn SQLite's errors and damage into ours."""
        try:
            yield
        except (sqlite3.Error, DamagedData, UnicodeDecodeError) as error:
            raise self._remembered(store_error(self.path, error)) from error

    def _remembered(self, error: StoreError) -> StoreError:
        if self._is_torn():
            # What looks like damage is the other half of a change.
            return StoreBusy(self.path)
        # Not the error itself: its traceback would keep the connection alive.
        if isinstance(error, StoreDamaged):
            self._damage = error.reason
        if isinstance(error, StoreReadOnly):
            # SQLite opens a file that it cannot write as read-only, also when the disk is full, and keeps it read-only.
            self._is_spoiled = True
        return error

    def _check_no_log(self) -> None:
        """Do not create a file beside the log of another: SQLite would take its pages for those of the new file."""
        if files.has_log(self.path):
            reason = f"it is missing, but its log {files.log_of(self.path).name} is there"
            hint = "Nothing was written. Put the file back, or a backup: `bullpen restore FILE` keeps the log."
            raise StoreDamaged(self.path, reason, hint)

    def _fill(self, draft: Path) -> None:
        with self._translating(), closing(connect(draft, "mode=rw")) as db:
            schema.build(db)

    def _open(self, *, to_write: bool) -> Connection:
        """Return a connection to a sound file, or raise what is wrong with it, without writing a byte."""
        for _ in range(TRIES):
            seen, inode = files.fingerprint(self.path), files.inode(self.path)
            try:
                return self._open_checked(inode, to_write=to_write)
            except StoreError as error:
                # Another process may have been copying its log into the file, and we saw half of that; or it has put
                # another file in its place while we waited for its lock.
                has_changed = isinstance(error, StoreDamaged) and files.fingerprint(self.path) != seen
                is_replaced = files.inode(self.path) != inode or (isinstance(error, LogLost) and self._was_restored())
                if not has_changed and not is_replaced:
                    raise
                self._damage = ""
        raise StoreBusy(self.path)

    def _was_restored(self) -> bool:
        """Wait while a backup is put in the place of the file; return whether there is no trace of a lost log then.

        The log is removed first, and its index last.
        """
        if self._others_here():
            return False
        deadline = time.monotonic() + BUSY_SECONDS
        while files.is_locked(self.path) and time.monotonic() < deadline:
            time.sleep(WAIT_SECONDS)
        return not write_ahead_log.damage(self.path)

    def _open_checked(self, inode: tuple[int, int] | None, *, to_write: bool) -> Connection:
        has_log = files.has_log(self.path)
        if others := self._others_here():
            self._check_same_log(others)
        else:
            reason = write_ahead_log.damage(self.path)
            # A checkpoint that was not finished leaves a file that only fits together with its log.
            files.check_file(self.path, schema.latest_version(), has_log=has_log or bool(reason))
            if reason:
                raise LogLost(self.path, reason)
        if not to_write and all(other._reader for other in others) and files.is_kept(self.path):
            # Reading a backup must not change it, not even into the newest format.
            raise StoreReadOnly(self.path, "is a backup that cannot be copied to be read")
        files.check_access(self.path)
        files.make_private(self.path)
        with self._translating(), ExitStack() as on_error:
            if has_log:
                # Closing a writable connection copies the log into the file, so a read-only one checks first.
                with closing(connect(self.path, "mode=ro")) as reader:
                    self._check_tables(reader)
            db = on_error.enter_context(closing(connect(self.path, "mode=rw")))
            self._check_tables(db)
            self._check_not_replaced(inode)
            self._set_up(db)
            # From here on, SQLite's lock keeps others from replacing it.
            self._check_not_replaced(inode)
            on_error.pop_all()
        return db

    def _check_not_replaced(self, inode: tuple[int, int] | None) -> None:
        """Do not write to a file that has lost its name: its log would be that of the file that has the name now."""
        if files.inode(self.path) != inode:
            raise StoreBusy(self.path)

    def _open_to_read(self, refusal: StoreError) -> Connection:
        """Return a connection to a file that cannot be written, or raise why not."""
        # Hardly ever needed, and commands start faster without.
        from bullpen.store.read_only import Reader

        try:
            with self._translating(), ExitStack() as on_error:
                reader = Reader(self.path, connect)
                on_error.callback(reader.close)
                self._check_tables(reader.connection)
                if reader.is_copy:
                    self._set_up(reader.connection)
                on_error.pop_all()
        except (StoreReadOnly, StoreFull, OSError):
            raise copy(refusal) from None
        self._reader = reader
        return reader.connection

    def _others_here(self) -> list["Database"]:
        """Return those in this process that have the same file open."""
        return open_here(self.path)

    def _check_same_log(self, others: list["Database"]) -> None:
        """Do not write to a new log while others write to one that was removed; closing them saves it."""
        if any(other._log is not None and other._log.state() == "removed" for other in others):
            name = files.log_of(self.path).name
            raise LogLost(self.path, f"its log {name} was removed while it is open here. Close it: that may save it")

    def _check_tables(self, db: Connection) -> None:
        # In one transaction, so that SQLite locks the file once and not for every table.
        db.execute("BEGIN")
        try:
            version = schema.version_of(db)
            if version > schema.latest_version():
                raise StoreTooNew(self.path, version, schema.latest_version())
            schema.check(db)
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _set_up(self, db: Connection) -> None:
        if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreFailed(self.path, "SQLite cannot keep a write-ahead log on this file system")
        db.executescript(SETTINGS)
        schema.migrate(db)

    def _close_without_writing(self, connection: Connection) -> None:
        """Close, but leave the log as it is: the last connection to close copies it, unless that one is read-only."""
        with suppress(sqlite3.Error), closing(connect(self.path, "mode=ro")) as reader:
            # It may find damage; all the same, it is connected then.
            with suppress(sqlite3.Error):
                reader.execute("SELECT 1 FROM sqlite_master").fetchone()
            connection.close()


def open_here(path: Path) -> list[Database]:
    """Return those in this process that have a file open."""
    inode = files.inode(path)
    return [other for other in _open_here if inode is not None and other._inode == inode]


def connect(path: Path, mode: str) -> Connection:
    """Return a connection of SQLite, with the parameters of its URI."""
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
