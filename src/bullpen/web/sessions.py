"""Sessions of browsers and tokens of programs: they survive a restart, as hashes only, and end after a month.

Tickets are there, too: those that were not used yet, so that another process can make one for a running server.
"""

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.exchange.files import write_private_file
from bullpen.exchange.formatting import Writable
from bullpen.web.identity import Identity, Role

logger = logging.getLogger(__name__)

LIFETIME_SECONDS = 30 * 24 * 3600
MOST_SESSIONS = 1_000
MOST_TICKETS = 16
"""Unused ones; if there are more, the oldest becomes invalid."""
FILE_MODE = 0o600

Value = TypeVar("Value")


class Session(Struct, frozen=True, kw_only=True):
    """The access of one browser or program."""

    ends_at: int
    """Seconds since 1970."""
    began_at: int = 0
    role: Role = "viewer"
    person: str | None = None
    kind: Literal["browser", "token"] = "browser"
    browser: str = ""
    """Which one, in a few words."""
    is_owner: bool = False
    """As an earlier version wrote that the role is owner."""

    @property
    def identity(self) -> Identity:
        """Whose it is. Guests of an earlier version have no name here, so they read."""
        return Identity(role="owner" if self.is_owner else self.role, person=self.person)


class Ticket(Struct, frozen=True, kw_only=True):
    """The access that one browser can still get."""

    ends_at: float
    """Seconds since 1970."""
    role: Role
    person: str | None = None

    @property
    def identity(self) -> Identity:
        """Whom it is for."""
        return Identity(role=self.role, person=self.person)


class Record(Struct, frozen=True, kw_only=True):
    """What the file holds."""

    sessions: dict[str, Session] = {}
    """By the hash of its secret, the oldest first."""
    tickets: dict[str, Ticket] = {}
    """The same, of those that are not used yet."""
    port: int = 0
    """Where the server listened last: browsers know it by that."""
    url: str = ""
    """Its address for people."""


class Sessions:
    """Those who have access. Without a file they are forgotten at the end."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._record = Record()
        self._version: tuple[int, ...] = ()
        self._read()

    @property
    def port(self) -> int:
        """The port of the last server with this file; 0 if there is none."""
        return self._record.port

    @property
    def url(self) -> str:
        """The address of the last server with this file; empty if there is none."""
        return self._record.url

    def remember_place(self, port: int, url: str) -> None:
        """Keep where the server listens, for the next start and for other processes."""
        if (port, url) != (self._record.port, self._record.url):
            self._change(lambda record: replace(record, port=port, url=url))

    def add(
        self, key: str, identity: Identity, *, kind: Literal["browser", "token"] = "browser", browser: str = ""
    ) -> None:
        """Give access, by the hash of a secret."""
        now = int(time.time())
        session = Session(
            ends_at=now + LIFETIME_SECONDS,
            began_at=now,
            role=identity.role,
            person=identity.person,
            kind=kind,
            browser=browser,
        )

        def added(record: Record) -> Record:
            kept = {known: one for known, one in record.sessions.items() if one.ends_at > now}
            return replace(record, sessions=_last({**kept, key: session}, MOST_SESSIONS))

        self._change(added)

    def get(self, key: str) -> Session | None:
        """Return the access of somebody. Another process with the same file may have given or revoked it."""
        self._read()
        session = self._record.sessions.get(key)
        return session if session is not None and session.ends_at > time.time() else None

    def all(self) -> dict[str, Session]:
        """Return everybody who has access, by the hashes of their secrets, the latest first."""
        self._read()
        now = time.time()
        return {key: one for key, one in reversed(self._record.sessions.items()) if one.ends_at > now}

    def revoke(self, key: str) -> None:
        """Take access away."""
        self._change(lambda record: replace(record, sessions=_without(record.sessions, key)))

    def add_ticket(self, key: str, identity: Identity, seconds: float) -> None:
        """Let one browser in, once, by the hash of a secret."""
        now = time.time()
        ticket = Ticket(ends_at=now + seconds, role=identity.role, person=identity.person)

        def added(record: Record) -> Record:
            kept = {known: one for known, one in record.tickets.items() if one.ends_at > now}
            return replace(record, tickets=_last({**kept, key: ticket}, MOST_TICKETS))

        self._change(added)

    def take_ticket(self, key: str) -> Identity | None:
        """Return whom a ticket is for, and remove it; None if it is unknown or too old."""
        self._read()
        if key not in self._record.tickets:
            return None
        taken: list[Ticket] = []

        def without(record: Record) -> Record:
            # Another process may have been faster.
            taken[:] = [record.tickets[key]] if key in record.tickets else []
            return replace(record, tickets=_without(record.tickets, key))

        self._change(without)
        return next((one.identity for one in taken if one.ends_at > time.time()), None)

    def _change(self, change: Callable[[Record], Record]) -> None:
        try:
            with self._locked():
                # Two changes can have the same time.
                self._version = ()
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
            version = _version_of(self._file)
            if version != self._version:
                self._record = msgspec.json.decode(self._file.read_bytes(), type=Record)
                self._version = version

    def _write(self) -> None:
        if self._file is None:
            return

        def write(file: Writable) -> None:
            file.write(msgspec.json.format(msgspec.json.encode(self._record)).decode())

        write_private_file(self._file, write, overwrite=True)
        self._version = _version_of(self._file)

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


def _version_of(file: Path) -> tuple[int, ...]:
    """Return what tells a file from an earlier one in its place."""
    found = file.stat()
    return found.st_mtime_ns, found.st_ino, found.st_size


def sessions_beside(database: Path) -> Path:
    """Return the file for the sessions of a database."""
    return database.with_name(f"{database.name}.sessions")


def _last(values: dict[str, Value], count: int) -> dict[str, Value]:
    return dict(list(values.items())[-count:])


def _without(values: dict[str, Value], key: str) -> dict[str, Value]:
    return {known: value for known, value in values.items() if known != key}
