"""Orders: what a node asks the workers of a pool to run, or one of them to do, at most once."""

import hashlib
import os
from collections.abc import Iterable
from typing import LiteralString

import msgspec
from msgspec import Struct

from bullpen.agents.spec import Permission
from bullpen.cluster.database import Database
from bullpen.cluster.file_work import FileWork


class Work(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="turn"):
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


Errand = FileWork
"""What else can be ordered, from one worker: what must be done where a folder is."""


class Order(Struct, frozen=True, kw_only=True):
    """A turn that a worker was given to run."""

    conversation: str
    turn: str
    pool: str
    packed: bytes
    """What is to be done; it may be of another version of bullpen."""

    @property
    def work(self) -> Work:
        """The turn to run; msgspec.MsgspecError is raised if it cannot be read."""
        return msgspec.msgpack.decode(self.packed, type=Work)

    @property
    def errand(self) -> Errand | None:
        """What else is to be done; None: it is a turn, or cannot be read."""
        try:
            return msgspec.msgpack.decode(self.packed, type=Errand)
        except msgspec.MsgspecError:
            return None

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by."""
        return self.conversation, self.turn


async def next_order(database: Database, worker: int, attempt: str, *, only_errands: bool = False) -> Order | None:
    """Take an order to run it, and note that it runs, in one commit; asked again, it is the same one."""
    query: LiteralString = "SELECT conversation, turn, pool, work FROM next_order(%s, %s, %s)"
    rows = await database.do(query, worker, attempt, only_errands)
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


async def settle(database: Database, conversation: str, turn: str) -> None:
    """Remove an order of a turn whose end is stored. If it has not ended, it is cancelled."""
    await database.do("SELECT settle_order(%s, %s)", conversation, turn)


def queues_of(pools: Iterable[str], worker: str) -> list[str]:
    """Return where a worker's orders come: its pools, and its own queues, as queue_of() in sql/0001.sql names them."""
    pools = list(pools)
    hashes = [hashlib.sha256(f"{pool}@{worker}".encode()).hexdigest()[:32] for pool in pools]
    return [*pools, *(f"{kind}{one}" for kind in "@!" for one in hashes)]


def new_token() -> str:
    """Return what a worker shows when it brings lines."""
    return os.urandom(16).hex()


def new_attempt() -> str:
    """Return a name for one try to take an order."""
    return os.urandom(16).hex()
