"""Access: a token for programs, and tickets that each sign in one browser once."""

import hashlib
import secrets
from collections.abc import Iterable
from math import inf
from time import monotonic

from bullpen.web.sessions import Session, Sessions

TOKEN_BYTES = 32
MOST_TICKETS = 16
"""Unused ones; if there are more, the oldest becomes invalid."""


class Keys:
    """The secrets of one server. Only hashes are compared, so timing reveals nothing about them."""

    def __init__(self, token: str | None = None, sessions: Sessions | None = None) -> None:
        self.token = token or new_secret()
        """For the header `Authorization: Bearer …`."""
        self._token_hash = _hash_of(self.token)
        self._tickets: dict[bytes, tuple[float, bool]] = {}
        """When each becomes invalid, and whether it is the owner's; the oldest first."""
        self._sessions = sessions or Sessions()

    def new_ticket(self, seconds: float = inf, *, is_owner: bool = False) -> str:
        """Return a secret that can be exchanged for a session, once: the owner's from the terminal, else a guest's."""
        ticket = new_secret()
        self._tickets[_hash_of(ticket)] = monotonic() + seconds, is_owner
        while len(self._tickets) > MOST_TICKETS:
            del self._tickets[next(iter(self._tickets))]
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return a new session for a ticket, or None if it is invalid, too old, or was used before."""
        ends_at, is_owner = self._tickets.pop(_hash_of(ticket), (-inf, False))
        if ends_at < monotonic():
            return None
        session = new_secret()
        self._sessions.add(_hash_of(session).hex(), is_owner=is_owner)
        return session

    def knows_token(self, token: str) -> bool:
        """Return whether a program has access."""
        return secrets.compare_digest(_hash_of(token), self._token_hash)

    def knows_session(self, sessions: Iterable[str]) -> bool:
        """Return whether a browser with these cookies has access."""
        return any(self._session(session) is not None for session in sessions)

    def knows_owner(self, sessions: Iterable[str]) -> bool:
        """Return whether a browser with these cookies came in with an address from the owner's terminal."""
        return any(found.is_owner for session in sessions if (found := self._session(session)))

    def _session(self, session: str) -> Session | None:
        return self._sessions.get(_hash_of(session).hex())


def new_secret() -> str:
    """Return 256 random bits, as text for addresses and headers."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def _hash_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
