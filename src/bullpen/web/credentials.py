"""Access: tokens for programs, and tickets that each sign in one browser once. Each is for somebody, with a role."""

import hashlib
import secrets
from collections.abc import Iterable

from bullpen.errors import UnknownSession
from bullpen.web.identity import OWNER, Identity, Visitor
from bullpen.web.sessions import Session, Sessions, Ticket

TOKEN_BYTES = 32
TICKET_SECONDS = 600
ID_CHARACTERS = 12


class Keys:
    """The secrets of one server. Only hashes are compared, so timing reveals nothing about them."""

    def __init__(
        self, token: str | None = None, sessions: Sessions | None = None, metrics_token: str | None = None
    ) -> None:
        self.token = token or new_secret()
        """The owner's, for the header `Authorization: Bearer …`."""
        self._token_hash = _hash_of(self.token)
        self.metrics_token = metrics_token or new_secret()
        """Of a program that may read the metrics and nothing else."""
        self._metrics_hash = _hash_of(self.metrics_token)
        self._sessions = sessions or Sessions()

    def new_ticket(self, identity: Identity = OWNER, seconds: float = TICKET_SECONDS) -> str:
        """Return a secret that can be exchanged for a session, once."""
        ticket = new_secret()
        self._sessions.add_ticket(_hash_of(ticket), identity, seconds)
        return ticket

    def new_invitation(self, identity: Identity, seconds: float) -> str:
        """Return such a secret for somebody else's browser, or raise BullpenError if too many are not used yet."""
        ticket = new_secret()
        self._sessions.add_ticket(_hash_of(ticket), identity, seconds, is_invitation=True)
        return ticket

    def identity_of(self, ticket: str) -> Identity | None:
        """Return whom a ticket is for, or None if it cannot be used."""
        found = self._sessions.ticket(_hash_of(ticket))
        return None if found is None else found.identity

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
        session = self._sessions.get(key)
        return None if session is None or session.kind != "token" else _visitor(key, session)

    def of_metrics_token(self, token: str) -> Visitor | None:
        """Return for whom a program asks for the metrics, or None if this token is not for them."""
        return Visitor(role="viewer") if secrets.compare_digest(_hash_of(token), self._metrics_hash) else None

    def of_cookies(self, cookies: Iterable[str]) -> Visitor | None:
        """Return who uses a browser with these cookies, or None if it has no access."""
        known = self._sessions.known(_hash_of(cookie) for cookie in cookies)
        return next((_visitor(key, one) for key, one in known.items() if one.kind == "browser"), None)

    def still_knows(self, who: Visitor) -> bool:
        """Return whether somebody who had access still has it."""
        return not who.session or self._sessions.get(who.session) is not None

    def sessions(self) -> dict[str, Session]:
        """Return everybody who has access, the latest first, by an id that is not a secret."""
        return {session_id(key): one for key, one in self._sessions.all().items()}

    def tickets(self) -> dict[str, Ticket]:
        """Return the tickets that can still be used, the latest first, by an id that is not a secret."""
        return {session_id(key): one for key, one in self._sessions.tickets().items()}

    def revoke(self, given: str) -> None:
        """Take access away, by the id in a list; raise BullpenError if that is not stored."""
        keys = [key for key in (*self._sessions.all(), *self._sessions.tickets()) if session_id(key) == given]
        if not keys:
            raise UnknownSession(given)
        self._sessions.revoke(keys)
        self._sessions.ensure_stored()

    def revoke_all(self) -> list[str]:
        """Take everybody's access away, and that of tickets; return their ids."""
        keys = [*self._sessions.all(), *self._sessions.tickets()]
        self._sessions.revoke(keys)
        self._sessions.ensure_stored()
        return [session_id(key) for key in keys]

    async def catch_up(self) -> bool:
        """Know who has got access elsewhere up to now; return whether anybody may have."""
        return await self._sessions.catch_up()

    def ensure_stored(self) -> None:
        """Raise BullpenError if other processes do not know of the last change."""
        self._sessions.ensure_stored()


def _visitor(key: str, session: Session) -> Visitor:
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
