"""Membership: a process says that it lives, and nodes give up those of whom nothing is heard.

Time is only ever the database's. A dead process holds no lock and does not beat: that is noticed at once. A frozen one
holds its lock, and does not beat.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Literal, LiteralString

from msgspec import Struct

from bullpen.clock import sleep
from bullpen.cluster.bell import Bell, seldom_ring
from bullpen.cluster.database import GONE, Database, stop_if_cancelled
from bullpen.cluster.doing import doing
from bullpen.cluster.joining import refusals

logger = logging.getLogger(__name__)

Kind = Literal["node", "worker"]
CANCELS = "bullpen_cancel"
"""Rings with the id of a worker if somebody wants one of its turns to end."""
BEAT_SECONDS = 1.0
STALE_SECONDS = 5.0
"""Who has not said for so long that it lives is given up."""
GONE_SECONDS = 2.5
"""Who holds no lock either is given up after this."""


class Process(Struct, frozen=True, kw_only=True):
    """What a process says of itself."""

    kind: Kind
    name: str
    address: str = ""
    """Where a node takes lines; empty: nowhere."""
    pools: tuple[str, ...] = ()
    announced: bytes = b""


class Member:
    """This process in the cluster, until it leaves or is given up."""

    def __init__(self, process_id: int) -> None:
        self.id = process_id
        self.given_up = asyncio.Event()
        """Set when others took it for dead: all that it says now is refused."""


StopTurns = Callable[[Sequence[tuple[str, str]]], None]
"""Is told which turns of a worker somebody wants to end."""


@asynccontextmanager
async def joined(
    database: Database, bell: Bell, process: Process, *, stop_turns: StopTurns = lambda _: None
) -> AsyncIterator[Member]:
    """Take part in a cluster: from now on others expect to hear that this process lives.

    CannotJoin is raised if its role may not.
    """
    with refusals():
        rows = await database.do(
            "SELECT join_cluster(%s, %s, %s, %s::text[], %s)",
            *(process.kind, process.name, process.address, list(process.pools), process.announced),
        )
    member = Member(rows[0][0])
    try:
        # With a connection of its own: what others wait for must not keep this process from saying that it lives.
        async with Database(database.url, most=1) as own, doing(partial(bell.listen, member.id)):
            # It takes nothing before others can see that it lives, however long that takes.
            await bell.has_listened.wait()
            if not await own.do("SELECT FROM beat(%s)", member.id):
                member.given_up.set()
            async with doing(partial(_beat, own, bell, member, stop_turns)):
                yield member
    finally:
        with suppress(*GONE):
            await database.once("SELECT leave_cluster(%s)", member.id)


async def _beat(database: Database, bell: Bell, member: Member, stop_turns: StopTurns) -> None:
    """Say again and again that this process lives; when somebody wants one of its turns to end, also at once."""
    with bell.waiting(CANCELS, payload=str(member.id)) as ringing:
        while not member.given_up.is_set():
            try:
                rows = await database.once("SELECT conversation, turn FROM beat(%s)", member.id)
            except GONE as error:
                logger.warning("not heard process=%d error=%s", member.id, str(error).strip())
            else:
                if not rows:
                    member.given_up.set()
                stop_turns([(conversation, turn) for conversation, turn in rows if turn is not None])
            await seldom_ring(ringing, BEAT_SECONDS)
            ringing.clear()


def channel_of(pool: str) -> str:
    """Return where procrastinate says that a queue has a new order."""
    return f"procrastinate_queue_v1#{pool}"


async def reap(
    database: Database,
    node: int,
    *,
    stale: float = STALE_SECONDS,
    gone: float = GONE_SECONDS,
    spared: float = STALE_SECONDS,
) -> list[int]:
    """Give up those of whom nothing is heard, once, but never this node; nobody right after it has reached the server.

    One of GONE is raised while that is away.
    """
    query: LiteralString = (
        "SELECT reap(%s, make_interval(secs => %s), make_interval(secs => %s), make_interval(secs => %s))"
    )
    return [row[0] for row in await database.once(query, node, stale, gone, spared)]


async def reap_for_ever(database: Database, node: int) -> None:
    """Give up those of whom nothing is heard, as every node does. One of them is enough."""
    while True:
        stop_if_cancelled()
        with suppress(*GONE):
            for process_id in await reap(database, node):
                logger.warning("given up process=%d", process_id)
        await sleep(BEAT_SECONDS)


async def is_alive(database: Database, process_id: int) -> bool:
    """Return whether others should take a process for alive: neither given up, nor silent for too long."""
    rows = await database.do(
        "SELECT ended_at IS NULL AND NOT is_stale(p, make_interval(secs => %s), make_interval(secs => %s))"
        " FROM processes p WHERE id = %s",
        *(STALE_SECONDS, GONE_SECONDS, process_id),
    )
    return bool(rows) and bool(rows[0][0])
