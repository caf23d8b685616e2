"""Outcomes: the one end of a turn that ran elsewhere: what the agent said, or that its worker is lost."""

from typing import Literal, LiteralString

import msgspec
from msgspec import Struct

from bullpen.agents.runner import Reply
from bullpen.cluster.bell import Bell, ring
from bullpen.cluster.database import Database
from bullpen.turn_events import Failed

CHANNEL = "bullpen_outcome"
LOOK_SECONDS = 5.0
"""How often to look even if nobody rings."""

Ending = Literal["ended", "cancelled", "lost"]


class Result(Struct, frozen=True, kw_only=True):
    """What came of a turn that ended: a reply or a failure, and all its lines."""

    reply: Reply | None = None
    failure: Failed | None = None
    log: list[bytes] = []
    """See TurnLog.packed."""
    answer: bytes = b""
    """Of an errand."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How a turn ended."""

    kind: Ending
    result: Result = Result()
    """Only of one that its worker has ended."""


async def end(database: Database, worker: int, key: tuple[str, str], outcome: Outcome) -> bool:
    """End a turn, and return whether that is its end: not if it was given up before."""
    packed = msgspec.msgpack.encode(outcome.result)
    query: LiteralString = "SELECT end_order(%s, %s, %s, %s, %s)"
    rows = await database.do(query, worker, *key, outcome.kind, packed)
    return bool(rows[0][0])


async def outcome_of(database: Database, bell: Bell, key: tuple[str, str]) -> Outcome:
    """Wait for the end of a turn."""
    query: LiteralString = "SELECT kind, result FROM outcomes WHERE conversation = %s AND turn = %s"
    with bell.waiting(CHANNEL, payload=" ".join(key)) as ringing:
        while not (rows := await database.do(query, *key)):
            await ring(ringing, LOOK_SECONDS)
            ringing.clear()
    kind, packed = rows[0]
    return Outcome(kind=kind, result=_result(packed))


def _result(packed: bytes) -> Result:
    """Return what a worker says; if that cannot be read, this is how its turn failed."""
    try:
        return msgspec.msgpack.decode(packed, type=Result) if packed else Result()
    except msgspec.MsgspecError as error:
        message = f"What its worker says of its end cannot be read: {error}."
        hint = "Are nodes and workers of the same version?"
        return Result(failure=Failed(kind="not_prepared", message=message, hint=hint))
