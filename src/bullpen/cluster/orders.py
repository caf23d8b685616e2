"""Orders: what a node asks the workers of a pool to run, at most once."""

import os
from collections.abc import Sequence
from typing import LiteralString

import msgspec
from msgspec import Struct

from bullpen.agents.spec import Permission
from bullpen.cluster.database import Database

PLACE: LiteralString = """
    INSERT INTO bullpen_cluster.orders (conversation, turn, pool, work, token, owner)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
"""Places an order. In the transaction that stores that the turn runs, so that there is both or neither."""


class Work(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a worker needs to run a turn: the prompt, and what the team file says of the member."""

    member: str
    prompt: str
    system: str | None = None
    agent: str = ""
    command: tuple[str, ...] = ()
    cwd: str = "."
    permissions: Permission = "read-only"
    allow: tuple[str, ...] = ()
    model: str | None = None
    arguments: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    idle_timeout: float
    total_timeout: float


class Order(Struct, frozen=True, kw_only=True):
    """A turn that a worker was given to run."""

    conversation: str
    turn: str
    pool: str
    packed: bytes
    """What is to be done; it may be of another version of bullpen."""

    @property
    def work(self) -> Work:
        """What is to be done; msgspec.MsgspecError is raised if it cannot be read."""
        return msgspec.msgpack.decode(self.packed, type=Work)

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by."""
        return self.conversation, self.turn


class Placed(Struct, frozen=True, kw_only=True):
    """An order as a node places it."""

    order: Order
    owner: int
    """The node that wants the outcome."""
    token: str = msgspec.field(default_factory=lambda: os.urandom(16).hex())
    """What a worker shows when it brings lines."""

    @property
    def row(self) -> Sequence[object]:
        """What PLACE takes."""
        order = self.order
        return (*order.key, order.pool, order.packed, self.token, self.owner)


async def place(database: Database, placed: Placed) -> None:
    """Place an order by itself; nothing if it was placed before."""
    await database.do(PLACE, *placed.row)


async def next_order(database: Database, worker: int, attempt: str) -> Order | None:
    """Take an order to run it, and note that it runs, in one commit; asked again, it is the same one."""
    query: LiteralString = "SELECT conversation, turn, pool, work FROM next_order(%s, %s)"
    rows = await database.do(query, worker, attempt)
    if not rows:
        return None
    conversation, turn, pool, packed = rows[0]
    return Order(conversation=conversation, turn=turn, pool=pool, packed=packed)


async def cancel(database: Database, conversation: str, turn: str) -> None:
    """Ask for the end of a turn; one that does not run yet has ended with that."""
    await database.do("SELECT cancel_order(%s, %s)", conversation, turn)


async def adopt(database: Database, conversation: str, turn: str, owner: int) -> str | None:
    """Become the one to whom a turn's worker speaks, and return the token for that; None: there is no such order."""
    query: LiteralString = "UPDATE orders SET owner = %s WHERE conversation = %s AND turn = %s RETURNING token"
    rows = await database.do(query, owner, conversation, turn)
    return rows[0][0] if rows else None


async def forget(database: Database, conversation: str, turn: str) -> None:
    """Remove an order whose outcome is stored elsewhere. What still comes from its worker is refused."""
    await database.do("SELECT forget_order(%s, %s)", conversation, turn)


def new_attempt() -> str:
    """Return a name for one try to take an order."""
    return os.urandom(16).hex()
