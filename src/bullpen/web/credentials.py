"""Access: tokens for programs, and tickets that each sign in one browser once. Each is for somebody, with a role."""

import hashlib
import secrets
from collections.abc import Iterable

from bullpen.errors import UnknownSession
from bullpen.web.identity import OWNER, Identity, Visitor
from bullpen.web.sessions import Session, Sessions

TOKEN_BYTES = 32
TICKET_SECONDS = 600
ID_CHARACTERS = 12


class Keys:
    """The secrets of one server. Only hashes are compared, so timing reveals nothing about them."""

    def __init__(self, token: str | None = None, sessions: Sessions | None = None) -> None:
        self.token = token or new_secret()
        """The owner's, for the header `Authorization: Bearer …`."""
        self._token_hash = _hash_of(self.token)
        self._sessions = sessions or Sessions()

    def new_ticket(self, identity: Identity = OWNER, seconds: float = TICKET_SECONDS) -> str:
        """Return a secret that can be exchanged for a session, once."""
        ticket = new_secret()
        self._sessions.add_ticket(_hash_of(ticket), identity, seconds)
        return ticket

    def redeem(self, ticket: str, browser: str = "") -> str | None:
        """Return a new session for a ticket, or None if it is invalid, too old, or was used before."""
        identity = self._sessions.take_ticket(_hash_of(ticket))
        if identity is None:
            return None
        session = new_secret()
        self._sessions.add(_hash_of(session), identity, browser=browser)
        return session

    def new_token(self, identity: Identity) -> str:
        """Return a secret for a program that acts for somebody."""
        token = new_secret()
        self._sessions.add(_hash_of(token), identity, kind="token")
        return token

    def of_token(self, token: str) -> Visitor | None:
        """Return for whom a program asks, or None if it has no access."""
        key = _hash_of(token)
        if secrets.compare_digest(key, self._token_hash):
            return Visitor(role=OWNER.role)
        return self._visitor(key, "token")

    def of_cookies(self, cookies: Iterable[str]) -> Visitor | None:
        """Return who uses a browser with these cookies, or None if it has no access."""
        found = (self._visitor(_hash_of(cookie), "browser") for cookie in cookies)
        return next((one for one in found if one is not None), None)

    def still_knows(self, who: Visitor) -> bool:
        """Return whether somebody who had access still has it."""
        return not who.session or self._sessions.get(who.session) is not None

    def sessions(self) -> dict[str, Session]:
        """Return everybody who has access, the latest first, by an id that is not a secret."""
        return {session_id(key): one for key, one in self._sessions.all().items()}

    def revoke(self, given: str) -> None:
        """Take access away, by the id in the list."""
        keys = [key for key in self._sessions.all() if session_id(key) == given]
        if not keys:
            raise UnknownSession(given)
        for key in keys:
            self._sessions.revoke(key)

    def _visitor(self, key: str, kind: str) -> Visitor | None:
        session = self._sessions.get(key)
        if session is None or session.kind != kind:
            return None
        identity = session.identity
        return Visitor(role=identity.role, person=identity.person, session=key)


def id_of(secret: str) -> str:
    """Return the id of the session or token with this secret."""
    return session_id(_hash_of(secret))


def session_id(key: str) -> str:
    """Return what people call a session by."""
    return key[:ID_CHARACTERS]


def new_secret() -> str:
    """Return 256 random bits, as text for addresses and headers."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def _hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
