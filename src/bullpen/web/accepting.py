"""Accepting connections, also when there are too many, or too few file descriptors to accept another.

The loop of asyncio logs a traceback for every connection that it cannot accept, thousands a second.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from math import inf
from time import monotonic

from bullpen.clock import sleep
from bullpen.web.connections import SECONDS, Connection, Connections

PAUSE_SECONDS = 0.1
DROPPED_PER_PAUSE = 16
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Why nothing more can be accepted until others are closed."""
QUIET_SECONDS = 60.0
"""The same is not said again for so long."""

logger = logging.getLogger(__name__)


class Acceptor:
    """Accepts connections until it is closed."""

    def __init__(
        self,
        listener: socket.socket,
        connections: Connections,
        new_connection: Callable[[], Connection],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._new_connection = new_connection
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[None]] = set()
        self._said_at: dict[str, float] = {}
        listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Accept no more, and give up those that are not made yet."""
        # Before the listener is closed, since its number may be used again at once.
        self._loop.remove_reader(self._listener)
        for task in (self._accepting, *self._connecting):
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until nothing is accepted any more."""
        await asyncio.gather(self._accepting, *self._connecting, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            try:
                accepted, address = await self._loop.sock_accept(self._listener)
            except OSError as error:
                self._say("Connections cannot be accepted for the moment: %s. They wait.", error.strerror or str(error))
                # Anything else, such as somebody who left before they were accepted, is not for lack of room.
                for _ in range(DROPPED_PER_PAUSE if error.errno in NO_ROOM else 0):
                    self._connections.drop_oldest()
                await sleep(PAUSE_SECONDS)
            else:
                self._take(accepted, address[0])
                # However many come, those that are there have their turn.
                await asyncio.sleep(0)

    def _take(self, accepted: socket.socket, peer: str) -> None:
        if not self._connections.make_room(peer):
            self._say("A connection from %s was refused: too many are open.", peer)
            accepted.close()
            return
        connection = self._new_connection()
        self._connections.add(connection, peer)
        connection.connecting = task = asyncio.create_task(self._connect(accepted, connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, accepted: socket.socket, connection: Connection) -> None:
        limit = None if self._tls is None else SECONDS["request"]
        try:
            # Cancelled to make room, or not made because the other side left or does not speak TLS: then it is over.
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._loop.connect_accepted_socket(
                    lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=limit
                )
        finally:
            if connection.transport is None:
                self._connections.remove(connection)

    def _say(self, text: str, about: str) -> None:
        now = monotonic()
        if now - self._said_at.get(text, -inf) >= QUIET_SECONDS:
            self._said_at[text] = now
            logger.warning(text, about)
