"""Sessions of browsers: they survive a restart of the server, on the disk only as hashes, and end after a month."""

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from bullpen.exchange.files import write_private_file
from bullpen.exchange.formatting import Writable

logger = logging.getLogger(__name__)

LIFETIME_SECONDS = 30 * 24 * 3600
MOST_SESSIONS = 1_000
FILE_MODE = 0o600


class Session(Struct, frozen=True, kw_only=True):
    """The access of one browser."""

    ends_at: int
    """Seconds since 1970."""
    is_owner: bool = False
    """Whether it came in with an address from the owner's terminal."""


class Record(Struct, frozen=True, kw_only=True):
    """What the file holds."""

    sessions: dict[str, Session] = {}
    """By the hash of its secret, the oldest first."""
    port: int = 0
    """Where the server listened last: browsers know it by that."""


class Sessions:
    """The browsers that have access. Without a file they are forgotten at the end."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._record = Record()
        self._version = 0
        self._read()

    @property
    def port(self) -> int:
        """The port of the last server with this file; 0 if there is none."""
        return self._record.port

    def remember_port(self, port: int) -> None:
        """Keep the port for the next start."""
        if port != self._record.port:
            self._change(lambda record: Record(sessions=record.sessions, port=port))

    def add(self, key: str, *, is_owner: bool = False) -> None:
        """Give a browser access, by the hash of its secret."""
        now = int(time.time())

        def added(record: Record) -> Record:
            kept = {known: one for known, one in record.sessions.items() if one.ends_at > now}
            kept[key] = Session(ends_at=now + LIFETIME_SECONDS, is_owner=is_owner)
            return Record(sessions=dict(list(kept.items())[-MOST_SESSIONS:]), port=record.port)

        self._change(added)

    def get(self, key: str) -> Session | None:
        """Return the access of a browser. Another server with the same file may have let it in."""
        if key not in self._record.sessions:
            self._read()
        session = self._record.sessions.get(key)
        return session if session is not None and session.ends_at > time.time() else None

    def _change(self, change: Callable[[Record], Record]) -> None:
        try:
            with self._locked():
                self._read()
                self._record = change(self._record)
                self._write()
        except OSError as error:
            # It works until the end of this process.
            self._record = change(self._record)
            logger.warning("sessions not stored file=%s error=%s", self._file, error)

    def _read(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            version = self._file.stat().st_mtime_ns
            if version != self._version:
                self._record = msgspec.json.decode(self._file.read_bytes(), type=Record)
                self._version = version

    def _write(self) -> None:
        if self._file is None:
            return

        def write(file: Writable) -> None:
            file.write(msgspec.json.format(msgspec.json.encode(self._record)).decode())

        write_private_file(self._file, write, overwrite=True)
        self._version = self._file.stat().st_mtime_ns

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other servers from writing until we have, or one would lose the other's change."""
        if self._file is None:
            yield
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._file.with_name(f"{self._file.name}.lock"), os.O_CREAT | os.O_RDWR, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def sessions_beside(database: Path) -> Path:
    """Return the file for the sessions of a database."""
    return database.with_name(f"{database.name}.sessions")
