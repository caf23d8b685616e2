"""Attending: a node hears from all others where a person is needed, so that one page tells of all conversations."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

import msgspec
from starlette.types import Scope

from bullpen.clock import sleep
from bullpen.web.attention import AttentionFeed, Needed
from bullpen.web.identity import Visitor
from bullpen.web.nodes import Nodes, Peer
from bullpen.web.passing import Broken, NotReached, passed_on

AGAIN_SECONDS = 1.0
REQUEST: Scope = {"method": "GET", "path": "/attention", "headers": []}
NODE = Visitor(role="viewer")


@asynccontextmanager
async def attending(everywhere: AttentionFeed, nodes: Nodes) -> AsyncIterator[None]:
    """Take from all other nodes where a person is needed, until the context is left."""
    task = asyncio.create_task(_attend(everywhere, nodes))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _attend(everywhere: AttentionFeed, nodes: Nodes) -> None:
    heard: dict[Peer, asyncio.Task[None]] = {}
    try:
        async for others in nodes.others():
            for peer in set(heard) - set(others):
                heard.pop(peer).cancel()
            for peer in set(others) - set(heard):
                heard[peer] = asyncio.create_task(_hear(everywhere, peer))
    finally:
        for task in heard.values():
            task.cancel()
        await asyncio.gather(*heard.values(), return_exceptions=True)


async def _hear(everywhere: AttentionFeed, peer: Peer) -> None:
    """Hear one node, as long as it is there."""
    while True:
        told: set[str] = set()
        try:
            with suppress(NotReached, Broken):
                async with passed_on(peer, REQUEST, b"", NODE) as answer, aclosing(answer.body) as pieces:
                    async for needed in _read(pieces):
                        told.add(needed.id)
                        everywhere.take(needed)
        finally:
            # Who has its conversations next tells the rest.
            for conversation_id in told:
                everywhere.forget(conversation_id)
        await sleep(AGAIN_SECONDS)


async def _read(pieces: AsyncIterator[bytes]) -> AsyncIterator[Needed]:
    """Read server-sent events."""
    rest = b""
    async for piece in pieces:
        *frames, rest = (rest + piece).split(b"\n\n")
        for frame in frames:
            lines = frame.split(b"\n")
            if b"event: attention" in lines:
                data = b"\n".join(line[6:] for line in lines if line.startswith(b"data: "))
                yield msgspec.json.decode(data, type=Needed)
