"""Bell: one connection that waits for notifications, and that holds a lock while its process lives."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from bullpen.clock import sleep
from bullpen.cluster.database import AGAIN_SECONDS, CONNECTION, GONE, stop_if_cancelled

logger = logging.getLogger(__name__)

LOCK_CLASS = 1651864944
"""Of the locks that processes hold; sql/0001.sql looks for them."""
LOCK_SECONDS = 1.0
"""How often to try to have it."""
MOMENT_SECONDS = 0.1
ANY = ""
"""Rings for every payload."""


async def ring(ringing: asyncio.Event, seconds: float) -> None:
    """Wait for a ring, for a while. Being cancelled counts for more, also if somebody below has not passed that on."""
    stop_if_cancelled()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ringing.wait()


async def seldom_ring(ringing: asyncio.Event, seconds: float) -> None:
    """Wait for a ring, and a moment longer: anybody in the database may ring all the time."""
    await ring(ringing, seconds)
    await sleep(MOMENT_SECONDS)


class Bell:
    """Rings for those who wait. A ring says that something may have changed: what is true is in the tables."""

    def __init__(self, url: str, *channels: str) -> None:
        self._url = url
        self._channels = channels
        self._waiting: dict[tuple[str, str], list[asyncio.Event]] = {}
        self.has_listened = asyncio.Event()
        """Set when it has listened, and tried to have its lock."""

    @contextmanager
    def waiting(self, *channels: str, payload: str = ANY) -> Iterator[asyncio.Event]:
        """Have an event set whenever it rings in a channel, for a payload, or may have done so unheard."""
        event = asyncio.Event()
        keys = [(channel, payload) for channel in channels]
        for key in keys:
            self._waiting.setdefault(key, []).append(event)
        try:
            yield event
        finally:
            for key in keys:
                self._waiting[key].remove(event)
                if not self._waiting[key]:
                    del self._waiting[key]

    async def listen(self, lock: int) -> None:
        """Listen, and hold the lock of this process, until it is cancelled; connect again whenever that is lost."""
        while True:
            try:
                async with await AsyncConnection.connect(self._url, **CONNECTION) as connection:
                    await self._listen_on(connection, lock)
            except GONE as error:
                logger.warning("not listening error=%s", str(error).strip())
            stop_if_cancelled()
            await sleep(AGAIN_SECONDS)

    async def _listen_on(self, connection: AsyncConnection[Any], lock: int) -> None:
        for channel in self._channels:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        is_locked = False
        while True:
            if not is_locked:
                # The server may not have noticed yet that our last connection is broken; the beats say that we live.
                tried = await connection.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK_CLASS, lock])
                is_locked = await tried.fetchone() == (True,)
                self.has_listened.set()
            self._ring_everywhere()
            async for notification in connection.notifies(timeout=None if is_locked else LOCK_SECONDS):
                self._ring(notification)

    def _ring(self, notification: psycopg.Notify) -> None:
        for payload in (notification.payload, ANY):
            for event in self._waiting.get((notification.channel, payload), ()):
                event.set()

    def _ring_everywhere(self) -> None:
        """Wake everybody: what was said while nobody listened is lost."""
        for events in self._waiting.values():
            for event in events:
                event.set()
