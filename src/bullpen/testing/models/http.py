"""A tiny HTTP/1.1 server: enough for any client that follows the protocol, and robust against one that does not."""

import asyncio
import json
import logging
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024
MAX_BODY_BYTES = 256 * 1024 * 1024


class HttpRequest(Struct, frozen=True, kw_only=True):
    """One request, read to its end."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """As it was before the client compressed it."""


class HttpResponse(Struct, frozen=True, kw_only=True):
    """A response. A body in pieces is streamed."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | AsyncGenerator[bytes, None] = b""


class ConnectionDropped(Exception):
    """Raised in a body: the connection is closed there, without the end that HTTP requires."""


class BadRequest(Exception):
    """A request that cannot be read, and the status to refuse it with."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return a response with a JSON body."""
    body = json.dumps(value, ensure_ascii=False).encode()
    return HttpResponse(status=status, headers={"content-type": "application/json", **(headers or {})}, body=body)


class HttpServer(ABC):
    """Answers requests on a free port of 127.0.0.1 while its context is open.

    What `respond` raises closes the connection, and is raised again when the context ends.
    """

    def __init__(self) -> None:
        self.port = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._failures: list[Exception] = []

    @abstractmethod
    async def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=MAX_LINE_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        if self._failures and error is None:
            raise self._failures[0]

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, ConnectionDropped, asyncio.IncompleteReadError) as error:
            logger.debug("connection ended error=%r", error)
        except asyncio.CancelledError:
            # A client that stops reading would block the rest of a response, and with it the connection.
            writer.transport.abort()
            raise
        except Exception as error:
            logger.exception("request failed")
            self._failures.append(error)
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether another may follow."""
        try:
            request = await _read_request(reader, writer)
        except BadRequest as error:
            refusal = json_response({"error": {"message": error.reason}}, error.status, {"connection": "close"})
            await _write_response(writer, refusal)
            return False
        response = await self.respond(request)
        await _write_response(writer, response, with_body=request.method != "HEAD")
        return request.headers.get("connection", "").lower() != "close"


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest:
    method, path, query = _parsed(await _read_line(reader))
    headers = await _read_headers(reader)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = _decompressed(await _read_body(reader, headers), headers.get("content-encoding", "identity"))
    return HttpRequest(method=method, path=path, query=query, headers=headers, body=body)


def _parsed(request_line: str) -> tuple[str, str, str]:
    match request_line.split(" "):
        case [method, target, "HTTP/1.1"]:
            path, _, query = target.partition("?")
            return method, path, query
        case _:
            raise BadRequest(400, f"This is not a request in HTTP/1.1: {request_line[:80]!r}")


async def _read_headers(reader: asyncio.StreamReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    while line := await _read_line(reader):
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(400, f"This is not a header: {line[:80]!r}")
        headers[name.lower()] = value.strip()
    return headers


async def _read_line(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(431, f"A line is longer than {MAX_LINE_BYTES} bytes.") from None
    return line.removesuffix(b"\r\n").decode("latin-1")


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    return await reader.readexactly(_size(headers.get("content-length", "0"), base=10))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := _size((await _read_line(reader)).partition(";")[0], base=16):
        body += await reader.readexactly(size)
        if await _read_line(reader):
            raise BadRequest(400, "A chunk of the body is longer than it says.")
    await _read_headers(reader)
    return bytes(body)


def _size(text: str, *, base: int) -> int:
    try:
        size = int(text, base)
    except ValueError:
        raise BadRequest(400, f"This is not the length of a body: {text[:80]!r}") from None
    if not 0 <= size <= MAX_BODY_BYTES:
        raise BadRequest(413, f"A body must not have more than {MAX_BODY_BYTES} bytes.")
    return size


def _decompressed(body: bytes, encoding: str) -> bytes:
    match encoding.lower():
        case "identity":
            return body
        case "gzip" | "deflate":
            try:
                # 32 more than the largest window means: detect gzip or zlib automatically.
                return zlib.decompress(body, wbits=zlib.MAX_WBITS + 32)
            except zlib.error as error:
                raise BadRequest(400, f"The body cannot be decompressed: {error}") from None
        case _:
            raise BadRequest(415, f"A body in {encoding[:80]!r} cannot be read here.")


async def _write_response(writer: asyncio.StreamWriter, response: HttpResponse, *, with_body: bool = True) -> None:
    writer.write(_head(response))
    if not with_body:
        await writer.drain()
    elif isinstance(response.body, bytes):
        writer.write(response.body)
        await writer.drain()
    else:
        await _write_pieces(writer, response.body)


def _head(response: HttpResponse) -> bytes:
    if isinstance(response.body, bytes):
        framing = f"content-length: {len(response.body)}"
    else:
        framing = "transfer-encoding: chunked"
    lines = (f"{name}: {value}" for name, value in response.headers.items())
    return "\r\n".join((f"HTTP/1.1 {response.status} {_phrase(response.status)}", *lines, framing, "\r\n")).encode()


def _phrase(status: int) -> str:
    """Return the reason phrase of a status; some in use (529) have none, which is allowed."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


async def _write_pieces(writer: asyncio.StreamWriter, pieces: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(pieces):
        async for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
