"""Sessions of browsers and tokens of programs: they survive a restart, as hashes only, and end after a month.

Tickets are there, too: those that were not used yet, so that another process can make one for a running server. What
cannot be stored holds in this process, until it ends.
"""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen import clock
from bullpen.errors import BullpenError
from bullpen.web.identity import Identity, Role
from bullpen.web.session_file import SessionFile

logger = logging.getLogger(__name__)

LIFETIME_SECONDS = 30 * 24 * 3600
MOST_SESSIONS = 1_000
MOST_OWN_TICKETS = 16
"""Unused ones for the owner's own browsers; if there are more, the oldest becomes invalid."""
MOST_INVITATIONS = 100
"""Unused ones; one more is refused, since somebody may be about to use each of them."""

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
    began_at: int = 0
    role: Role
    person: str | None = None
    is_invitation: bool = False
    """Whether the owner gives it to somebody."""

    @property
    def identity(self) -> Identity:
        """Whom it is for."""
        return Identity(role=self.role, person=self.person)


class Record(Struct, frozen=True, kw_only=True):
    """What is kept."""

    sessions: dict[str, Session] = {}
    """By the hash of its secret, the oldest first."""
    tickets: dict[str, Ticket] = {}
    """The same, of those that are not used yet."""
    port: int = 0
    """Where the server listened last: browsers know it by that."""
    url: str = ""
    """Its address for people."""


class Keeper(Protocol):
    """What keeps the record, for several processes at once."""

    def read(self) -> bytes | None:
        """Return it, if it is not the one that was read or written last."""
        ...

    def change(self, change: Callable[[bytes], bytes]) -> None:
        """Replace it by what it is changed into, or raise OSError; nobody else does so meanwhile."""
        ...

    async def catch_up(self) -> bool:
        """Let `read` know what others have changed up to now; return whether there may be anything."""
        ...


class Sessions:
    """Those who have access. Without a file, or another keeper, they are forgotten at the end."""

    def __init__(self, kept: Path | Keeper | None = None) -> None:
        self._keeper = SessionFile(kept) if isinstance(kept, Path) else kept
        self._record = Record()
        self._unstored: list[Callable[[Record], Record]] = []
        self._why_unstored = ""
        self._read()

    @property
    def port(self) -> int:
        """The port of the last server with this file; 0 if there is none."""
        return self._record.port

    @property
    def url(self) -> str:
        """The address of the last server with this file; empty if there is none."""
        return self._record.url

    async def catch_up(self) -> bool:
        """Know what other servers have changed up to now; return whether there may be anything."""
        return self._keeper is not None and await self._keeper.catch_up()

    def remember_place(self, port: int, url: str) -> None:
        """Keep where the server listens, for the next start and for other processes."""
        if (port, url) != (self._record.port, self._record.url):
            self._change(lambda record: replace(record, port=port, url=url))

    def add(
        self, key: str, identity: Identity, *, kind: Literal["browser", "token"] = "browser", browser: str = ""
    ) -> None:
        """Give access, by the hash of a secret."""
        now = int(clock.now())
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
        return self.known([key]).get(key)

    def known(self, keys: Iterable[str]) -> dict[str, Session]:
        """Return those of several who have access; the file is looked at once."""
        self._read()
        found = {key: self._record.sessions.get(key) for key in keys}
        now = clock.now()
        return {key: one for key, one in found.items() if one is not None and one.ends_at > now}

    def all(self) -> dict[str, Session]:
        """Return everybody who has access, by the hashes of their secrets, the latest first."""
        self._read()
        now = clock.now()
        return {key: one for key, one in reversed(self._record.sessions.items()) if one.ends_at > now}

    def tickets(self) -> dict[str, Ticket]:
        """Return the tickets that a browser can still use, by the hashes of their secrets, the latest first."""
        self._read()
        return dict(reversed(_lasting(self._record.tickets).items()))

    def revoke(self, keys: Iterable[str]) -> None:
        """Take access away, and that which a ticket would give."""
        gone = set(keys)

        def without(record: Record) -> Record:
            return replace(record, sessions=_without(record.sessions, gone), tickets=_without(record.tickets, gone))

        self._change(without)

    def add_ticket(self, key: str, identity: Identity, seconds: float, *, is_invitation: bool = False) -> None:
        """Let one browser in, once, by the hash of a secret."""
        if is_invitation and sum(one.is_invitation for one in self.tickets().values()) >= MOST_INVITATIONS:
            raise BullpenError(
                f"{MOST_INVITATIONS} invitations have not been used yet. Revoke some under People, or wait until they "
                "end: each does after an hour."
            )
        now = clock.now()
        ticket = Ticket(
            ends_at=now + seconds,
            began_at=int(now),
            role=identity.role,
            person=identity.person,
            is_invitation=is_invitation,
        )

        def added(record: Record) -> Record:
            kept = _lasting(record.tickets)
            own = [known for known, one in kept.items() if not one.is_invitation]
            too_old = [] if is_invitation else own[: 1 - MOST_OWN_TICKETS]
            return replace(record, tickets={**_without(kept, too_old), key: ticket})

        self._change(added)

    def ticket(self, key: str) -> Ticket | None:
        """Return a ticket that can still be used; None if it is unknown, too old or was used."""
        return self.tickets().get(key)

    def take_ticket(self, key: str) -> Identity | None:
        """Return whom a ticket is for, and remove it; None if it is unknown or too old."""
        if self.ticket(key) is None:
            return None
        taken: list[Ticket] = []

        def without(record: Record) -> Record:
            # Another process may have been faster.
            taken.extend([record.tickets[key]] if key in record.tickets else [])
            return replace(record, tickets=_without(record.tickets, [key]))

        self._change(without)
        return taken[0].identity if taken else None

    def ensure_stored(self) -> None:
        """Raise BullpenError if the last change is not kept."""
        if self._why_unstored:
            raise BullpenError(
                f"This could not be stored in {self._keeper}: {self._why_unstored}. Other processes, and this one "
                "after a restart, do not know of it. Make room for the file, or let it be written, and do it again."
            )

    def _change(self, change: Callable[[Record], Record]) -> None:
        changed: Record | None = None

        def changing(data: bytes) -> bytes:
            nonlocal changed
            changed = change(self._decoded(data))
            return msgspec.json.format(msgspec.json.encode(changed))

        try:
            if self._keeper is not None:
                self._keeper.change(changing)
        except OSError as error:
            # It works until the end of this process.
            self._record = change(self._record) if changed is None else changed
            self._unstored.append(change)
            self._why_unstored = error.strerror or str(error)
            logger.warning("sessions not stored place=%s error=%s", self._keeper, error)
        else:
            self._record = change(self._record) if changed is None else changed
            self._unstored.clear()
            self._why_unstored = ""

    def _read(self) -> None:
        if self._keeper is not None and (data := self._keeper.read()) is not None:
            self._record = self._decoded(data)

    def _decoded(self, data: bytes) -> Record:
        """Return what is kept, with what could not be; if that cannot be read, what is known here."""
        try:
            record = msgspec.json.decode(data, type=Record)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self._record
        for change in self._unstored:
            record = change(record)
        return record


def _last(values: dict[str, Value], count: int) -> dict[str, Value]:
    return dict(list(values.items())[-count:])


def _without(values: dict[str, Value], keys: Iterable[str]) -> dict[str, Value]:
    gone = set(keys)
    return {known: value for known, value in values.items() if known not in gone}


def _lasting(tickets: dict[str, Ticket]) -> dict[str, Ticket]:
    now = clock.now()
    return {key: one for key, one in tickets.items() if one.ends_at > now}
