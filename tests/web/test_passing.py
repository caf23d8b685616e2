"""A request is passed on to another node on a connection that is kept, unless it must not be asked twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from msgspec import Struct
from starlette.types import Scope

from bullpen.web import passing
from bullpen.web.passing import Broken, Kept, passed_on

ASKED: Scope = {"method": "GET", "path": "/api/conversations/calm-oak", "headers": []}
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Other(Struct, frozen=True):
    """Another node."""

    number: int
    passage: str
    secret: str = "s"


class Answering:
    """A node that answers some requests on each connection, and hangs up in the middle of the next one."""

    def __init__(self, answers: int) -> None:
        self.connections = 0
        self._answers = answers

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for _ in range(self._answers):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER)
            await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def answering(answers: int) -> AsyncIterator[tuple[Answering, Other, Kept]]:
    node, kept = Answering(answers), Kept()
    async with await asyncio.start_server(node.connected, "127.0.0.1", 0) as server:
        yield node, Other(1, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"), kept
        kept.close()
        await asyncio.sleep(0)


async def ask(peer: Other, kept: Kept | None) -> bytes:
    async with passed_on(peer, ASKED, b"", None, kept) as answer, aclosing(answer.body) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_one_connection_is_enough_for_requests_one_after_the_other() -> None:
    async with answering(100) as (node, peer, kept):
        assert [await ask(peer, kept) for _ in range(5)] == [b"hi"] * 5
        assert node.connections == 1


async def test_without_kept_connections_each_request_has_its_own() -> None:
    async with answering(100) as (node, peer, _):
        assert [await ask(peer, None) for _ in range(3)] == [b"hi"] * 3
        assert node.connections == 3


async def test_what_is_asked_on_a_connection_that_is_being_closed_is_asked_again() -> None:
    async with answering(1) as (node, peer, kept):
        assert [await ask(peer, kept) for _ in range(3)] == [b"hi"] * 3
        assert node.connections == 3


async def test_a_node_that_hangs_up_on_a_new_connection_does_not_answer() -> None:
    async with answering(0) as (node, peer, kept):
        with pytest.raises(Broken):
            await ask(peer, kept)
        assert node.connections == 1


async def test_an_answer_that_is_not_read_to_its_end_ends_the_connection() -> None:
    async with answering(100) as (node, peer, kept):
        async with passed_on(peer, ASKED, b"", None, kept):
            pass
        await ask(peer, kept)
        assert node.connections == 2


async def test_a_connection_that_nobody_uses_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "KEPT_SECONDS", 0.05)
    async with answering(100) as (node, peer, kept):
        await ask(peer, kept)
        while kept._idle:
            await asyncio.sleep(0.01)
        assert kept.take(peer.passage) is None
        await ask(peer, kept)
        assert node.connections == 2
