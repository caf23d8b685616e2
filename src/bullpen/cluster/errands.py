"""Errands: what a node has one worker do where its folders are, in the same tables as turns: once, with one end."""

import asyncio
import os
from collections.abc import Callable
from typing import LiteralString

import msgspec
from msgspec import Struct

from bullpen.agents.runner import to_the_end
from bullpen.clock import sleep
from bullpen.cluster.node import Node
from bullpen.cluster.orders import Errand, cancel, settle
from bullpen.cluster.outcomes import Outcome, outcome_of
from bullpen.errors import WorkerAway

LOOK_SECONDS = 1.0
"""How often to look whether the worker is still there."""
GIVEN_UP = "This node was given up by the others, so it does nothing with files."
LONGEST_WAIT_SECONDS = 10.0
"""For what an earlier owner has ordered. In a folder, a worker does one thing after the other anyway."""


class There(Struct, frozen=True):
    """One worker, as one pool knows it. Its name alone could be that of a worker whose role serves other pools."""

    pool: str
    worker: str

    def __str__(self) -> str:
        return f"{self.pool}@{self.worker}"


def is_there(node: Node, there: There) -> bool:
    """Return whether a worker lives, as far as is known."""
    return any(worker.name == there.worker for worker in node.workers(there.pool))


async def run_errand(
    node: Node,
    conversation_id: str,
    there: There,
    errand: Errand,
    *,
    on_end: Callable[[Outcome], None] = lambda _: None,
) -> bytes:
    """Have a worker do something, and return its packed answer; WorkerAway is raised if it is away, or dies.

    If this is cancelled, so is the errand, and it has ended then. `on_end` is told how, in any case.
    """
    if not is_there(node, there):
        raise WorkerAway.of(there.worker, there.pool)
    key = conversation_id, f"!{os.urandom(8).hex()}"
    place: LiteralString = "SELECT place_errand(%s, %s, %s, %s, %s, %s)"
    packed = msgspec.msgpack.encode(errand)
    rows = await node.database.do(place, *key, there.pool, there.worker, packed, node.id)
    if not rows[0][0]:
        raise WorkerAway(GIVEN_UP)
    following = asyncio.ensure_future(outcome_of(node.database, node.bell, key))
    try:
        outcome = await _outcome(node, there, key, following)
    except asyncio.CancelledError:
        await to_the_end(_cancelled(node, key, following))
        raise
    finally:
        node.do_soon(settle(node.database, node.id, *key))
        if following.done() and not following.cancelled():
            on_end(following.result())
    if outcome.kind == "ended":
        return outcome.result.answer
    raise (WorkerAway.lost if outcome.kind == "lost" else WorkerAway.of)(there.worker, there.pool)


async def end_errands_left(node: Node, conversation_id: str) -> None:
    """End what an earlier owner of a conversation has ordered; wait for what cannot be ended, or does not end soon."""
    query: LiteralString = "SELECT errands_left(%s, %s)"
    for _ in range(round(LONGEST_WAIT_SECONDS / LOOK_SECONDS)):
        if not await node.database.do(query, node.id, conversation_id):
            return
        await sleep(LOOK_SECONDS)


async def _outcome(node: Node, there: There, key: tuple[str, str], following: "asyncio.Future[Outcome]") -> Outcome:
    """Wait for the end. What a worker has begun is lost with it; what it has not is cancelled when it is away."""
    while not following.done():
        await asyncio.wait([following], timeout=LOOK_SECONDS)
        if not following.done() and not is_there(node, there):
            await _cancel(node, key, following)
    if following.cancelled():
        raise WorkerAway(GIVEN_UP)
    return following.result()


async def _cancelled(node: Node, key: tuple[str, str], following: "asyncio.Future[Outcome]") -> None:
    await _cancel(node, key, following)
    await asyncio.wait([following])


async def _cancel(node: Node, key: tuple[str, str], following: "asyncio.Future[Outcome]") -> None:
    """Ask for the end of an errand; if it is not this node's any more, wait for it no longer."""
    if not await cancel(node.database, node.id, *key):
        following.cancel()
        await asyncio.wait([following])
