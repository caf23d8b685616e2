"""Access: a token for programs, and tickets that each sign in one browser once."""

import hashlib
import secrets
from collections.abc import Iterable

TOKEN_BYTES = 32
MOST_TICKETS = 16
"""Unused ones; if there are more, the oldest becomes invalid."""
MOST_SESSIONS = 1_000


class Keys:
    """The secrets of one server. Only hashes are compared, so timing reveals nothing about them."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or new_secret()
        """For the header `Authorization: Bearer …`."""
        self._token_hash = _hash_of(self.token)
        # Dicts, because they keep their order.
        self._tickets: dict[bytes, bool] = {}
        self._sessions: dict[bytes, bool] = {}
        """Each with whether it is the owner's."""

    def new_ticket(self, *, is_owner: bool = False) -> str:
        """Return a secret that can be exchanged for a session, once: the owner's from the terminal, else a guest's."""
        return _add_secret(self._tickets, MOST_TICKETS, is_owner)

    def redeem(self, ticket: str) -> str | None:
        """Return a new session for a ticket, or None if it is invalid or was used before."""
        key = _hash_of(ticket)
        if key not in self._tickets:
            return None
        return _add_secret(self._sessions, MOST_SESSIONS, self._tickets.pop(key))

    def knows_token(self, token: str) -> bool:
        """Return whether a program has access."""
        return secrets.compare_digest(_hash_of(token), self._token_hash)

    def knows_session(self, sessions: Iterable[str]) -> bool:
        """Return whether a browser with these cookies has access."""
        return any(_hash_of(session) in self._sessions for session in sessions)

    def knows_owner(self, sessions: Iterable[str]) -> bool:
        """Return whether a browser with these cookies came in with an address from the owner's terminal."""
        return any(self._sessions.get(_hash_of(session), False) for session in sessions)


def new_secret() -> str:
    """Return 256 random bits, as text for addresses and headers."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def _add_secret(hashes: dict[bytes, bool], most: int, is_owner: bool) -> str:
    secret = new_secret()
    hashes[_hash_of(secret)] = is_owner
    while len(hashes) > most:
        del hashes[next(iter(hashes))]
    return secret


def _hash_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
