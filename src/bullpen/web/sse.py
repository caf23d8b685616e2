"""Server-sent events: a stream for one page or program, which can resume after a lost connection."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from bullpen.web.identity import ROLES, visitor

QUIET_SECONDS = 15.0
"""After this long without events a comment is sent, so that nothing in between closes the connection."""
STALLED_SECONDS = 30.0
"""A client that reads nothing for this long is disconnected, and can resume where it was."""
RETRY_MILLISECONDS = 1000
STILL_HERE = b": still here\n\n"

HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # For proxies that would buffer small responses.
    (b"x-accel-buffering", b"no"),
)

Item = TypeVar("Item")


class Source(Protocol[Item]):
    """What a stream reads."""

    async def several(self) -> list[Item]:
        """Wait for something to send, and return it; raise StopAsyncIteration at the end."""
        ...


def position(request: Request) -> int | None:
    """Return the number of the last event that a client has seen; a browser that reconnects sends it in a header."""
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return int(given) if given.isdecimal() and len(given) < 16 else None


async def joined(frames: list[bytes]) -> bytes:
    """Encode what is encoded already."""
    return b"".join(frames)


class EventStream(Generic[Item]):
    """A response that continues until one side closes it."""

    def __init__(
        self, source: AbstractContextManager[Source[Item]], encode: Callable[[list[Item]], Awaitable[bytes]]
    ) -> None:
        self._source = source
        self._encode = encode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the source ends or the client disconnects."""
        who = visitor()
        # So that the connection knows whose stream it is, and how much they may do.
        scope.setdefault("state", {})["stream_of"] = (ROLES.index(who.role), who.session) if who else (0, "")
        await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        gone = asyncio.ensure_future(_disconnected(receive))
        sending = asyncio.ensure_future(self._send_events(send))
        try:
            await asyncio.wait([gone, sending], return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                # A timeout means that the client has stalled; any other exception is a bug, and is raised.
                with contextlib.suppress(TimeoutError):
                    sending.result()
        finally:
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)

    async def _send_events(self, send: Send) -> None:
        with self._source as source:
            await _send(send, b"retry: %d\n\n" % RETRY_MILLISECONDS)
            with contextlib.suppress(StopAsyncIteration):
                while True:
                    await _send(send, await self._next(source))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self, source: Source[Item]) -> bytes:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                events = await source.several()
        except TimeoutError:
            return STILL_HERE
        return await self._encode(events)


async def _send(send: Send, data: bytes) -> None:
    async with asyncio.timeout(STALLED_SECONDS):
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
