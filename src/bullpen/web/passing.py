"""Passing a request on to another node, and its answer back, as it comes."""

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager

import h11
import msgspec
from msgspec import Struct
from starlette.types import Scope

from bullpen.web.identity import Visitor
from bullpen.web.nodes import Peer

CONNECT_SECONDS = 2.0
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


@asynccontextmanager
async def passed_on(peer: Peer, scope: Scope, body: bytes, who: Visitor | None) -> AsyncIterator[Answer]:
    """Ask another node, and yield the beginning of its answer. NotReached or Broken is raised if there is none."""
    host, _, port = peer.passage.rpartition(":")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(host, int(port))
    except (OSError, ValueError) as error:
        raise NotReached(str(error)) from error
    try:
        exchange = _Exchange(reader, writer)
        try:
            await exchange.ask(_request(peer, scope, body, who), body)
            answer = await exchange.begin()
        except (OSError, EOFError, h11.ProtocolError) as error:
            raise Broken(str(error)) from error
        yield answer
    finally:
        writer.transport.abort()


def _request(peer: Peer, scope: Scope, body: bytes, who: Visitor | None) -> h11.Request:
    headers = [(b"host", peer.passage.encode()), (SECRET, peer.secret.encode()), (VISITOR, packed(who))]
    headers += _without(scope["headers"], LEFT_OUT)
    headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close")]
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


class _Exchange:
    """One request and its answer on a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    async def ask(self, request: h11.Request, body: bytes) -> None:
        events: list[h11.Event] = [request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]
        for event in events:
            self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    async def begin(self) -> Answer:
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
