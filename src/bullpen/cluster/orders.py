"""Orders: what a node asks the workers of a pool to run, or one of them to do, at most once."""

import hashlib
import os
from collections.abc import Iterable
from itertools import count
from typing import LiteralString

import msgspec
from msgspec import Struct

from bullpen.agents.held_session import WantedSession
from bullpen.cluster.database import Database
from bullpen.cluster.file_work import CheckWork, FileWork
from bullpen.cluster.worktree_work import WorktreeWork
from bullpen.context.prompt import AssemblerOutput
from bullpen.memory import SessionUse
from bullpen.permissions import Permission
from bullpen.team.team import Member


class SessionOrder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """In which session of its CLI a turn is to run. The worker that has its file decides whether it continues."""

    use: SessionUse
    wanted: WantedSession | None = None
    """What the session's file must be; None: it is new."""
    worker: str = ""
    """The worker that had its file after the last turn in it."""
    fresh: SessionUse
    """The session that begins if that one cannot be continued."""
    prompt: str | None = None
    """What the agent is given then; None: the same."""
    system: str | None = None


class Work(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="turn"):
    """All that a worker needs to run a turn: the prompt, and what the team file says of the member."""

    member: str
    prompt: str
    system: str | None = None
    agent: str = ""
    command: tuple[str, ...] = ()
    cwd: str = "."
    apart: str | None = None
    """If it works in a worktree of its own instead, the turn that that was made for; empty: it is for all turns."""
    forked: tuple[str, ...] = ()
    """Folders with whose files the conversation was forked: it is to work in its own files, and never in those."""
    permissions: Permission = "read-only"
    allow: tuple[str, ...] = ()
    model: str | None = None
    arguments: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    idle_timeout: float
    total_timeout: float
    session: SessionOrder | None = None
    """None: it has no memory of its own."""
    tools: bool = False
    """Whether its CLI is told of the tools of the turn."""


def work_for(member: Member, given: AssemblerOutput, session: SessionOrder | None = None) -> Work:
    """Return what a worker is asked to run for a member."""
    return Work(
        member=member.name,
        prompt=given.prompt,
        system=given.system_flag,
        agent=member.agent,
        command=member.command,
        cwd=member.cwd,
        permissions=member.permissions,
        allow=member.allow,
        model=member.model,
        arguments=member.arguments,
        env=member.env,
        idle_timeout=member.idle_timeout,
        total_timeout=member.total_timeout,
        session=session,
    )


Errand = FileWork | WorktreeWork | CheckWork
"""What else can be ordered, from one worker: what must be done where a folder is."""


_errand = msgspec.msgpack.Decoder[Errand](Errand)
_attempts = count(1)


class Order(Struct, frozen=True, kw_only=True):
    """A turn that a worker was given to run."""

    conversation: str
    turn: str
    pool: str
    packed: bytes
    """What is to be done; it may be of another version of bullpen."""
    listener: tuple[str, str] | None = None
    """Where what the agent says goes, and what is shown there, if its owner was alive when it was handed out."""

    @property
    def work(self) -> Work:
        """The turn to run; msgspec.MsgspecError is raised if it cannot be read."""
        return msgspec.msgpack.decode(self.packed, type=Work)

    @property
    def errand(self) -> Errand | None:
        """What else is to be done; None: it is a turn, or cannot be read."""
        try:
            errand: Errand = _errand.decode(self.packed)
        except msgspec.MsgspecError:
            return None
        return errand

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by."""
        return self.conversation, self.turn


async def next_order(database: Database, worker: int, attempt: int, *, only_errands: bool = False) -> Order | None:
    """Take an order to run it, and note that it runs, in one commit; asked again, it is the same one."""
    query: LiteralString = "SELECT conversation, turn, pool, work, address, token FROM next_order(%s, %s, %s)"
    rows = await database.do(query, worker, attempt, only_errands)
    if not rows:
        return None
    conversation, turn, pool, packed, address, token = rows[0]
    listener = None if token is None else (address, token)
    return Order(conversation=conversation, turn=turn, pool=pool, packed=packed, listener=listener)


async def cancel(database: Database, node: int, conversation: str, turn: str) -> bool:
    """Ask for the end of a turn; one that does not run yet has ended with that. Return whether it is this node's."""
    rows = await database.do("SELECT cancel_order(%s, %s, %s)", node, conversation, turn)
    return bool(rows[0][0])


class Adopted(Struct, frozen=True, kw_only=True):
    """An order that another owner has placed."""

    token: str
    """What its worker shows."""
    worker: str
    """The only one that may take it; empty: any of its pool."""
    packed: bytes
    """What it runs."""
    notes: bytes
    """What the owner noted for the one that would be there at its end."""


class GivenUp(Exception):
    """This node was given up by the others, so nothing is its business any more."""


async def adopt(database: Database, node: int, conversation: str, turn: str) -> Adopted | None:
    """Become the one to whom a turn's worker speaks; None: there is no such order. GivenUp is raised, too."""
    query: LiteralString = "SELECT lives, token, worker, work, notes FROM adopt_order(%s, %s, %s)"
    rows = await database.do(query, node, conversation, turn)
    if not rows:
        return None
    lives, token, worker, packed, notes = rows[0]
    if not lives:
        raise GivenUp
    return Adopted(token=token, worker=worker, packed=packed, notes=notes)


async def open_to_all(database: Database, node: int, conversation: str, turn: str) -> None:
    """Let every worker of its pool take an order that one of them was to have, unless that has taken it."""
    await database.do("SELECT open_order(%s, %s, %s)", node, conversation, turn)


async def settle(database: Database, node: int, conversation: str, turn: str) -> None:
    """Remove an order of a turn whose end is stored. If it has not ended, it is cancelled."""
    await database.do("SELECT settle_order(%s, %s, %s)", node, conversation, turn)


async def settle_others(database: Database, node: int, conversation: str, running: Iterable[str]) -> None:
    """Remove all orders of a conversation but those of turns that still run."""
    await database.do("SELECT settle_others(%s, %s, %s::text[])", node, conversation, list(running))


def queues_of(pools: Iterable[str], worker: str) -> list[str]:
    """Return where a worker's turns come: its pools, and its own queues, as queue_of() in sql/0001.sql names them."""
    pools = list(pools)
    return [*pools, *(f"@{one}" for one in _hashes(pools, worker))]


def errand_queues_of(pools: Iterable[str], worker: str) -> list[str]:
    """Return where a worker's errands come."""
    return [f"!{one}" for one in _hashes(pools, worker)]


def _hashes(pools: Iterable[str], worker: str) -> list[str]:
    return [hashlib.sha256(f"{pool}@{worker}".encode()).hexdigest()[:32] for pool in pools]


def new_token() -> str:
    """Return what a worker shows when it brings lines."""
    return os.urandom(16).hex()


def new_attempt() -> int:
    """Return a number for one try to take an order, higher than all before."""
    return next(_attempts)
