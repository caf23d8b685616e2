"""Locks of owners: advisory locks of one session, which the server frees when the process dies or is cut off."""

import hashlib
from collections.abc import Collection
from contextlib import suppress
from threading import Lock
from time import monotonic

import psycopg

from bullpen.store.postgres.connections import Connections, Db, Session, is_usable

GRACE_SECONDS = 15
"""After we have reached the server again, in which owners take their locks again: until then, those from before its
start say nothing. That may be long ago: a server that recovers cannot be reached."""

SEEN_SECONDS = 0.3
"""For this long after a list was read, a lock that was held then is taken to be: else each owner would be a query."""

# Anybody in the database may hold any lock, so that only those count of who may own a conversation.
ALL_HELD = """
    SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND pid IN (SELECT pid FROM pg_stat_activity WHERE has_table_privilege(usesysid, 'states', 'UPDATE'))
"""
STATE = f"""
    SELECT EXISTS ({ALL_HELD} AND classid::bigint = %(high)s AND objid::bigint = %(low)s),
        EXISTS (SELECT 1 FROM states WHERE owner_token = %(token)s
            AND (locked_at > pg_postmaster_start_time()
                OR EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = pg_backend_pid()
                    AND backend_start < now() - make_interval(secs => %(grace)s))))
"""


class OwnerLocks:
    """The locks that one store holds for its owners. All methods may be called from any thread."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = Lock()
        self._session: Session | None = None
        self._held: set[str] = set()
        self._missing: set[str] = set()
        """Those whose locks another session had when we tried."""
        self._schema = ""
        self._seen: frozenset[tuple[int, int]] = frozenset()
        self._seen_at = -SEEN_SECONDS

    def hold(self, token: str) -> None:
        """Lock for an owner."""
        with self._lock:
            session = self._renewed()
            self._lock_in(session, [token])
            self._held.add(token)

    def is_held(self, token: str) -> bool | None:
        """Return whether some session holds an owner's lock; None if nobody ever did, or nobody can know."""
        if token in self._held:
            return True
        if not self._schema:
            with self._lock:
                self._renewed()
        high, low = divmod(self._key(token) % 2**64, 2**32)
        # That one is not held must be known for certain: it may have been locked since.
        if (high, low) in self._seen and monotonic() - self._seen_at < SEEN_SECONDS:
            return True
        values = {"high": high, "low": low, "token": token, "grace": GRACE_SECONDS}
        with self._connections.reading() as db:
            row = db.execute(STATE, values).fetchone()
        is_locked, is_dead = row or (False, False)
        return True if is_locked else False if is_dead else None

    def look_at_all(self, db: Db) -> None:
        """Remember for a moment which locks are held."""
        self._seen = frozenset((int(high), int(low)) for high, low in db.execute(ALL_HELD))
        self._seen_at = monotonic()

    def renew(self) -> None:
        """Take all locks again if the session was lost, and those that the server did not give us then."""
        with self._lock:
            if self._held:
                session = self._renewed()
                self._lock_in(session, self._missing & self._held)

    def let_go(self, token: str) -> None:
        """Unlock for a former owner."""
        with self._lock:
            if token not in self._held:
                return
            self._held.discard(token)
            # A session that was lost holds nothing.
            if self._session is not None and is_usable(self._session):
                with suppress(psycopg.Error):
                    self._session.execute("SELECT pg_advisory_unlock(%s)", (self._key(token),))

    def remove(self, token: str) -> None:
        """Unlock for a former owner: nothing else is left of it."""
        self.let_go(token)

    def close(self) -> None:
        """Let go of all."""
        with self._lock:
            self._held.clear()
            if self._session is not None:
                self._session.close()
                self._session = None

    def _renewed(self) -> Session:
        """Return the session, in which all are locked, however often it was lost."""
        if self._session is not None and is_usable(self._session):
            return self._session
        if self._session is not None:
            self._session.close()
        self._session = session = self._connections.connect()
        with self._connections.translating():
            row = session.execute("SELECT current_schema()").fetchone()
            self._schema = str(row[0]) if row else ""
        self._missing = set()
        self._lock_in(session, self._held)
        return session

    def _lock_in(self, session: Session, tokens: Collection[str]) -> None:
        """Lock for owners. The server may not have noticed yet that the session is lost which had their locks."""
        if not tokens:
            return
        keys = {self._key(token): token for token in tokens}
        query = "SELECT key, pg_try_advisory_lock(key) FROM unnest(%s::bigint[]) AS given (key)"
        with self._connections.translating():
            tried = {keys[key]: is_locked for key, is_locked in session.execute(query, (list(keys),))}
        self._missing = {token for token in self._missing | set(tried) if not tried.get(token)}

    def _key(self, token: str) -> int:
        """Return the number of an owner's lock. Databases of one server have locks of their own; schemas do not."""
        name = f"{self._schema}\0{token}".encode(errors="surrogatepass")
        return int.from_bytes(hashlib.sha256(name).digest()[:8], "big", signed=True)
