"""Passing a request on to another node, and its answer back, as it comes."""

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import h11
import msgspec
from msgspec import Struct
from starlette.types import Scope

from bullpen.web.identity import Visitor
from bullpen.web.nodes import Peer

CONNECT_SECONDS = 2.0
KEPT_SECONDS = 2.0
"""How long a connection is kept for another request; the other node keeps it longer."""
MOST_KEPT = 8
"""To each node."""
READ_BYTES = 65536
SECRET = b"bullpen-secret"
VISITOR = b"bullpen-visitor"
NOT_HERE = b"bullpen-not-here"
"""In an answer: the node does not own the conversation, and nothing was done."""
# Those of one connection, and what says who asks: that is in a header of ours.
LEFT_OUT = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade host "
    b"content-length expect authorization cookie".split()
)
LEFT_OUT_OF_ANSWERS = LEFT_OUT - {b"content-length"}

Headers = list[tuple[bytes, bytes]]


class NotReached(Exception):
    """The node was not asked: no connection could be made."""


class Broken(Exception):
    """The node was asked, and whether it did anything is unknown."""


class Answer(Struct, frozen=True):
    """The beginning of an answer."""

    status: int
    headers: Headers
    body: AsyncGenerator[bytes]

    @property
    def is_not_here(self) -> bool:
        """Whether the node does not own the conversation."""
        return any(name == NOT_HERE for name, _ in self.headers)


class Kept:
    """Connections to other nodes that are kept for a while, for the next request."""

    def __init__(self) -> None:
        self._idle: dict[str, list[_Line]] = {}

    def take(self, passage: str) -> "_Line | None":
        """Return one that nobody uses; None: there is none."""
        idle = self._idle.get(passage, [])
        while idle:
            line = idle.pop()
            if line.is_open:
                return line
            line.close()
        return None

    def put(self, passage: str, line: "_Line") -> None:
        """Keep one that nobody uses any more."""
        idle = self._idle.setdefault(passage, [])
        if len(idle) < MOST_KEPT:
            idle.append(line)
            asyncio.get_running_loop().call_later(KEPT_SECONDS, self._close, passage, line)
        else:
            line.close()

    def close(self) -> None:
        """Close all that nobody uses."""
        for passage, idle in list(self._idle.items()):
            for line in list(idle):
                self._close(passage, line)

    def _close(self, passage: str, line: "_Line") -> None:
        # If it was used and kept again since, that is a bit early.
        idle = self._idle.get(passage, [])
        if line in idle:
            idle.remove(line)
            line.close()
        if not idle:
            self._idle.pop(passage, None)


@asynccontextmanager
async def passed_on(
    peer: Peer, scope: Scope, body: bytes, who: Visitor | None, kept: Kept | None = None
) -> AsyncIterator[Answer]:
    """Ask another node, and yield the beginning of its answer. NotReached or Broken is raised if there is none.

    A kept connection may be closed by the other node at that moment, and then it is asked again: `kept` is only for
    what may be done twice.
    """
    line, answer = await _asked(peer, _request(peer, scope, body, who, is_kept=kept is not None), body, kept)
    try:
        yield answer
    finally:
        if kept is not None and line.is_free:
            kept.put(peer.passage, line)
        else:
            line.close()


async def _asked(peer: Peer, request: h11.Request, body: bytes, kept: Kept | None) -> "tuple[_Line, Answer]":
    line = None if kept is None else kept.take(peer.passage)
    if line is not None:
        with suppress(Broken):
            return line, await line.ask(request, body)
    line = await _connected(peer)
    return line, await line.ask(request, body)


async def _connected(peer: Peer) -> "_Line":
    host, _, port = peer.passage.rpartition(":")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return _Line(*await asyncio.open_connection(host, int(port)))
    except (OSError, ValueError) as error:
        raise NotReached(str(error)) from error


def _request(peer: Peer, scope: Scope, body: bytes, who: Visitor | None, *, is_kept: bool) -> h11.Request:
    headers = [(b"host", peer.passage.encode()), (SECRET, peer.secret.encode()), (VISITOR, packed(who))]
    headers += _without(scope["headers"], LEFT_OUT)
    headers += [(b"content-length", str(len(body)).encode())]
    headers += [] if is_kept else [(b"connection", b"close")]
    query = scope.get("query_string", b"")
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    target = path + (b"?" + query if query else b"")
    return h11.Request(method=scope["method"], target=target, headers=headers)


def _without(headers: Iterable[tuple[bytes, bytes]], names: frozenset[bytes]) -> Headers:
    return [(name, value) for name, value in headers if name not in names and not name.startswith(b"bullpen-")]


def packed(who: Visitor | None) -> bytes:
    """Return who asks, as a header. Nobody is on the machine of another node."""
    return base64.b64encode(msgspec.json.encode(None if who is None else msgspec.structs.replace(who, is_here=False)))


def unpacked(header: bytes) -> Visitor | None:
    """Return who asks; ValueError is raised for anything else."""
    who = msgspec.json.decode(base64.b64decode(header, validate=True), type=Visitor | None)
    return None if who is None else msgspec.structs.replace(who, is_here=False)


class _Line:
    """A connection, on which one request after the other is answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    @property
    def is_open(self) -> bool:
        """Whether the other node has not closed it, as far as is known."""
        return not self._reader.at_eof()

    @property
    def is_free(self) -> bool:
        """Whether the answer was read as a whole, and another request may follow."""
        return self._http.our_state is self._http.their_state is h11.DONE

    def close(self) -> None:
        """Close it at once."""
        self._writer.transport.abort()

    async def ask(self, request: h11.Request, body: bytes) -> Answer:
        """Return the beginning of the answer, or close the connection and raise Broken."""
        self._http = h11.Connection(h11.CLIENT)
        try:
            events: list[h11.Event] = [request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]
            self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
            await self._writer.drain()
            return await self._begin()
        except (OSError, EOFError, h11.ProtocolError) as error:
            self.close()
            raise Broken(str(error)) from error
        except BaseException:
            self.close()
            raise

    async def _begin(self) -> Answer:
        event = await self._next()
        while isinstance(event, h11.InformationalResponse):
            event = await self._next()
        if not isinstance(event, h11.Response):
            raise EOFError("no answer")  # noqa: TRY004 (it is the other side's mistake)
        names = [(name.lower(), value) for name, value in event.headers]
        # That of a node that does not own the conversation is for us.
        kept = [(name, value) for name, value in names if name not in LEFT_OUT_OF_ANSWERS]
        return Answer(event.status_code, kept, self._body())

    async def _body(self) -> AsyncGenerator[bytes]:
        try:
            while isinstance(event := await self._next(), h11.Data):
                yield bytes(event.data)
        except (OSError, EOFError, h11.ProtocolError) as error:
            raise Broken(str(error)) from error
        if not isinstance(event, h11.EndOfMessage):
            raise Broken("the answer ended early")

    async def _next(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(READ_BYTES))
        return event
