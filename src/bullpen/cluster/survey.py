"""A survey of a cluster: its nodes, its workers with what they announced, and what is wrong with the server."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
from msgspec import Struct
from psycopg import errors

from bullpen.cluster.announcing import Announcement, read_announcement
from bullpen.cluster.database import connect, in_sentences
from bullpen.cluster.membership import GONE_SECONDS, STALE_SECONDS, Kind
from bullpen.errors import CannotJoin
from bullpen.store.postgres.address import Address, read_address

PROCESSES: LiteralString = """
SELECT id, kind, name, address, pools, announced,
    extract(epoch FROM clock_timestamp() - beat_at)::float,
    is_stale(p, make_interval(secs => %s), make_interval(secs => %s))
FROM processes p WHERE ended_at IS NULL ORDER BY kind, name, id
"""
WAITING: LiteralString = """
SELECT pool, count(*) FROM orders o
WHERE NOT EXISTS (SELECT FROM runs r WHERE r.conversation = o.conversation AND r.turn = o.turn)
    AND NOT EXISTS (SELECT FROM outcomes e WHERE e.conversation = o.conversation AND e.turn = o.turn)
GROUP BY pool ORDER BY pool
"""
REPLICAS: LiteralString = "SELECT application_name, sync_state FROM pg_stat_replication ORDER BY application_name"

IS_REPLICA = (
    "This server is a replica: nothing can be stored in it. Use the address of the primary. Whether it may be failed "
    "over to, this command says there."
)
ASYNCHRONOUS = (
    "The replica {} is asynchronous, so do not fail over to it: what was acknowledged last may be missing there. "
    "Name it in synchronous_standby_names."
)
NOT_AWAITED = (
    'synchronous_commit is "local" here: no replica is waited for, so after failover what was acknowledged last may be '
    'missing. Set it to "on".'
)
UNSEEN = (
    "The role {role} does not see whether replicas are synchronous. GRANT pg_read_all_stats TO {role}, and look again."
)
FIRST = "The first node makes its tables: bullpen serve --cluster."
NODES_ROLE = "Use the role that nodes use."
SAME_NAME = (
    "{} workers of the pool {!r} are called {}, so what belongs to the files or sessions of one may reach the other. "
    "Give each a name of its own in its file. (One that was killed is listed for a few seconds.)"
)
NOBODY = "Nobody serves the pool {pool!r}, and {count} of its turns wait."


class Seen(Struct, frozen=True, kw_only=True):
    """A process of a cluster."""

    id: int
    kind: Kind
    name: str
    address: str
    pools: tuple[str, ...]
    announced: Announcement
    silent_seconds: float
    is_stale: bool
    """Whether so little is heard of it that it is about to be given up."""


class Survey(Struct, frozen=True, kw_only=True):
    """What is known of a cluster."""

    server: str
    processes: tuple[Seen, ...]
    waiting: dict[str, int]
    """Turns that wait for a worker, by their pools."""
    replicas: dict[str, str]
    """The replicas of the server: sync, async, potential or quorum."""
    problems: tuple[str, ...]

    def called(self, seen: Seen) -> str:
        """Return what a process is called: its name, with its number if another one has that name, too."""
        is_alone = sum((one.kind, one.name) == (seen.kind, seen.name) for one in self.processes) == 1
        return seen.name if is_alone else f"{seen.name} ({seen.id})"


def survey(url: str) -> Survey:
    """Look at a cluster; StoreUnreachable is raised if there is no server, CannotJoin if there is no cluster."""
    address = read_address(url)
    with in_sentences(url), connect(url) as connection:
        replicas = {name or "?": state or "" for name, state in connection.execute(REPLICAS)}
        problems = list(_problems_of_replicas(connection, replicas))
        processes, waiting = _processes(connection, address)
    served = {pool for process in processes for pool in process.pools if not process.is_stale}
    problems += [NOBODY.format(pool=pool, count=count) for pool, count in waiting.items() if pool not in served]
    workers = Counter((pool, one.name) for one in processes if one.kind == "worker" for pool in one.pools)
    problems += [SAME_NAME.format(count, pool, name) for (pool, name), count in workers.items() if count > 1]
    return Survey(
        server=address.shown,
        processes=processes,
        waiting=waiting,
        replicas=replicas,
        problems=tuple(problems),
    )


def _processes(connection: psycopg.Connection[Any], address: Address) -> tuple[tuple[Seen, ...], dict[str, int]]:
    try:
        rows = connection.execute(PROCESSES, [STALE_SECONDS, GONE_SECONDS]).fetchall()
        waiting = dict(connection.execute(WAITING).fetchall())
    except errors.UndefinedTable:
        raise CannotJoin(f"{address.shown} is not the server of a cluster yet, or not for this role. {FIRST}") from None
    except errors.InsufficientPrivilege:
        raise CannotJoin(f"This role reaches only the turns of its pools in {address.shown}. {NODES_ROLE}") from None
    return tuple(
        Seen(
            id=number,
            kind=kind,
            name=name,
            address=where,
            pools=tuple(pools),
            announced=read_announcement(announced),
            silent_seconds=seconds,
            is_stale=is_stale,
        )
        for number, kind, name, where, pools, announced, seconds, is_stale in rows
    ), waiting


def _problems_of_replicas(connection: psycopg.Connection[Any], replicas: dict[str, str]) -> Iterator[str]:
    """Say what would make a failover lose what was acknowledged."""
    row = connection.execute(
        "SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_user"
    ).fetchone()
    is_replica, commits, role = row or (False, "on", "")
    if is_replica:
        yield IS_REPLICA
    for name, state in replicas.items():
        if state in ("async", "potential"):
            yield ASYNCHRONOUS.format(name)
        elif not state:
            yield UNSEEN.format(role=role)
    if replicas and commits == "local":
        yield NOT_AWAITED
