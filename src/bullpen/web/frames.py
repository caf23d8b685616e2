"""Frames: server-sent events for many pages, numbered, so that a page that was away gets what it has missed."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

RECENT_BYTES = 4 * 1024 * 1024
"""Frames kept for pages that reconnect."""
UNREAD_BYTES = 4 * 1024 * 1024
"""A page with more unread than this is disconnected; it can reconnect and continue from its last frame."""


def server_sent(event: str, data: bytes, number: int | None = None) -> bytes:
    """Return one server-sent event."""
    # https://html.spec.whatwg.org/multipage/server-sent-events.html
    head = f"event: {event}\n".encode() + (b"" if number is None else b"id: %d\n" % number)
    # All three kinds of line end would end the data.
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return head + b"".join(b"data: %s\n" % line for line in lines) + b"\n"


class Frames:
    """Sends every frame to every reader. Only for the event loop's thread."""

    def __init__(self) -> None:
        self.number = 0
        """The number of the last frame."""
        self._recent: deque[bytes] = deque()
        self._recent_bytes = 0
        self._readers: set[Reader] = set()
        self._is_closed = False

    @property
    def has_readers(self) -> bool:
        """Whether anybody reads."""
        return bool(self._readers)

    def publish(self, event: str, data: bytes) -> None:
        """Send an event to all readers."""
        self.number += 1
        frame = server_sent(event, data, self.number)
        self._recent.append(frame)
        self._recent_bytes += len(frame)
        while self._recent_bytes > RECENT_BYTES:
            self._recent_bytes -= len(self._recent.popleft())
        for reader in self._readers:
            reader.add(frame)

    def skip(self) -> None:
        """Leave a frame out, and all before it: a page that has read only those gets `lagged`."""
        self.number += 1
        self._recent.clear()
        self._recent_bytes = 0

    @contextmanager
    def reading(self, after: int | None = None, first: bytes = b"") -> Iterator["Reader"]:
        """Yield the frames from now on, or those after a number; `lagged` comes first if some of them are gone."""
        reader = Reader()
        for frame in [first, *self._missed_since(after)]:
            reader.add(frame)
        self._readers.add(reader)
        if self._is_closed:
            reader.close()
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def close(self) -> None:
        """Let every reader end after its unread frames."""
        self._is_closed = True
        for reader in self._readers:
            reader.close()

    def _missed_since(self, after: int | None) -> list[bytes]:
        if after is None or after == self.number:
            return []
        gone = self.number - len(self._recent)
        if gone <= after < self.number:
            return list(self._recent)[after - gone :]
        return [server_sent("lagged", b"{}", gone), *self._recent]


class Reader:
    """The unread frames of one page."""

    def __init__(self) -> None:
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._is_ended = False
        self._is_ready = asyncio.Event()

    def add(self, frame: bytes) -> None:
        """Keep a frame until it is read; end if too much is unread."""
        if self._is_ended or not frame:
            return
        self._unread.append(frame)
        self._unread_bytes += len(frame)
        # What a page is first given may be large, and is read at once.
        self._is_ended = self._unread_bytes > RECENT_BYTES + UNREAD_BYTES
        self._is_ready.set()

    def close(self) -> None:
        """End after the unread frames."""
        self._is_ended = True
        self._is_ready.set()

    async def several(self) -> list[bytes]:
        """Wait for frames, and return all unread ones; raise StopAsyncIteration at the end."""
        while not self._unread:
            if self._is_ended:
                raise StopAsyncIteration
            self._is_ready.clear()
            await self._is_ready.wait()
        frames = list(self._unread)
        self._unread.clear()
        self._unread_bytes = 0
        return frames
