"""Connections: how long the other side may take, and how many there may be.

The server waits for the other side until a request is there in full, and while an answer is not read. Such a connection
has a time limit, and is closed sooner if a new one needs its place. One on which the server works, or sends events as
they happen, has no limit: a page may stay open for days. Only if all are such pages, somebody who has several loses the
oldest: first who may do least, and then who has the most.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

Awaited = Literal["request", "body", "reading"]
"""The head of a request, the rest of it, or that somebody reads what they were sent."""

Reader = tuple[int, str]
"""The rank of somebody's role, and the key of their session."""

SECONDS: dict[Awaited, float] = {"request": 20.0, "body": 60.0, "reading": 60.0}
"""How long each may take. Sending a little now and then does not help; reading does."""
MOST_CONNECTIONS = 2048
FEWEST_CONNECTIONS = 8
KEPT_DESCRIPTORS = 64
"""At least this many, and at least a quarter, are left for the store, the agents and everything else."""


class Connection(H11Protocol):
    """A connection that is closed when the other side takes too long."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        self.on_lost: Callable[[], object] = lambda: None
        self.connecting: asyncio.Task[None] | None = None
        """What makes this connection, until it is made; with TLS that takes the other side too."""
        self._awaited: Awaited | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    @property
    def is_waiting(self) -> bool:
        """Whether it is the other side's turn."""
        return self.transport is None or self._awaited is not None

    @property
    def stream_of(self) -> Reader | None:
        """To whom events are being sent on it; None: none are."""
        if self.is_waiting or self.scope is None:
            return None
        reader: Reader | None = self.scope["state"].get("stream_of")
        return reader

    def drop(self) -> None:
        """Close it at once, also if something has not been sent yet."""
        if self.transport is not None:
            self.transport.abort()
        elif self.connecting is not None:
            self.connecting.cancel()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_timer()
        super().connection_lost(exc)
        self.on_lost()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Wait until somebody reads."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Continue: somebody has read."""
        super().resume_writing()
        self._watch()

    def _now_awaited(self) -> Awaited | None:
        if self.flow.write_paused:
            return "reading"
        if self.cycle is None or self.cycle.response_complete:
            # The rest of a request that was answered early is awaited no longer than a new one.
            return "request"
        return "body" if self.cycle.more_body else None

    def _watch(self) -> None:
        """Set the time limit; for what was awaited before, it stays as it was."""
        awaited = self._now_awaited()
        if awaited != self._awaited:
            self._stop_timer()
            self._awaited = awaited
            self._start_timer()

    def _start_timer(self) -> None:
        if self._awaited is not None:
            self._unsent = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(SECONDS[self._awaited], self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            # A large answer over a slow line.
            self._start_timer()
        else:
            self.drop()


class Connections:
    """Those that are open, the oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_one_peer = max(1, most // 2)
        self._peers: dict[Connection, str] = {}
        self._of_peer: Counter[str] = Counter()

    def make_room(self, peer: str) -> bool:
        """Return whether there is room for one more from an address, which another may have to make."""
        if self._of_peer[peer] >= self._most_of_one_peer and not self._drop_one(peer):
            return False
        return len(self._peers) < self._most or self._drop_one()

    def add(self, connection: Connection, peer: str) -> None:
        """Count one until it is lost."""
        self._peers[connection] = peer
        self._of_peer[peer] += 1
        connection.on_lost = lambda: self.remove(connection)

    def remove(self, connection: Connection) -> None:
        """Count one no longer."""
        if (peer := self._peers.pop(connection, None)) is not None:
            self._of_peer[peer] -= 1
            if not self._of_peer[peer]:
                del self._of_peer[peer]

    def drop_oldest(self, peer: str | None = None) -> bool:
        """Close the oldest on which the server waits, of one address or of all; return whether there was any."""
        oldest = next((one for one in self._of(peer) if one.is_waiting), None)
        return oldest is not None and self._drop(oldest)

    def _drop_one(self, peer: str | None = None) -> bool:
        return self.drop_oldest(peer) or self._drop_oldest_stream(peer)

    def _drop_oldest_stream(self, peer: str | None) -> bool:
        """Close the oldest stream of somebody who has several, if anybody has; return whether it was."""
        streams = [(one, one.stream_of) for one in self._of(peer)]
        counted = Counter(reader for _, reader in streams if reader is not None)
        several = [(rank, -count, session) for (rank, session), count in counted.items() if count > 1]
        if not several:
            return False
        rank, _, session = min(several)
        return self._drop(next(one for one, reader in streams if reader == (rank, session)))

    def _of(self, peer: str | None) -> Iterator[Connection]:
        return (one for one, its_peer in self._peers.items() if peer in (None, its_peer))

    def _drop(self, connection: Connection) -> bool:
        self.remove(connection)
        connection.drop()
        return True


def most_connections() -> int:
    """Return how many this process may have, given how many files it may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    room = files - max(KEPT_DESCRIPTORS, files // 4)
    return min(max(room, FEWEST_CONNECTIONS), MOST_CONNECTIONS)
