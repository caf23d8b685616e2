"""What a worker's role cannot do with its password alone: read, forge, or keep the others from their work."""

import asyncio
from collections.abc import Iterator

import msgspec
import psycopg
import pytest
from tests.cluster.roles import POOL, Roles, two_roles
from tests.cluster.stage import place
from tests.cluster.test_orders import FAILED, an_order, worker

from bullpen.cluster import lines
from bullpen.cluster.bell import LOCK_CLASS
from bullpen.cluster.database import Database
from bullpen.cluster.membership import reap
from bullpen.cluster.orders import new_attempt, next_order
from bullpen.cluster.outcomes import end
from bullpen.cluster.turn_log import Line, Wrote
from bullpen.cluster.words import Told, leave_word
from bullpen.conversation.owner import this_process
from bullpen.store.postgres.store import PostgresStore

LET = {
    "made_by_version",
    "is_taken",
    "join_cluster",
    "beat",
    "leave_cluster",
    "next_order",
    "end_order",
    "listener_of",
    "leave_lines",
    "words_of",
    "cluster_name",
    "deleted_of",
}


@pytest.fixture
def roles(template: str) -> Iterator[Roles]:
    with two_roles() as made:
        yield made


async def node(database: Database) -> int:
    rows = await database.do("SELECT join_cluster('node', 'n', '', '{}', '')")
    joined: int = rows[0][0]
    return joined


def test_it_reaches_no_table_and_only_the_functions_for_workers(roles: Roles) -> None:
    with psycopg.connect(roles.worker) as connection:
        tables = connection.execute("""
            SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
            WHERE nspname IN ('public', 'bullpen_cluster') AND relkind IN ('r', 'v', 'm', 'S', 'p')
            AND CASE relkind WHEN 'S' THEN has_sequence_privilege(c.oid, 'USAGE, SELECT, UPDATE')
                ELSE has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                    OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES') END
        """).fetchall()
        functions = connection.execute("""
            SELECT proname FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace
            WHERE nspname IN ('public', 'bullpen_cluster') AND has_function_privilege(pg_proc.oid, 'EXECUTE')
        """).fetchall()
        assert tables == []
        assert {name for (name,) in functions} == LET
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE bullpen_cluster.mine (one text)")


async def test_it_cannot_be_a_node(roles: Roles) -> None:
    async with Database(roles.worker) as database:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await node(database)


async def test_it_cannot_keep_nodes_from_giving_up_the_dead_by_holding_their_locks(roles: Roles) -> None:
    async with Database(roles.node) as database:
        dead = await node(database)
        with psycopg.connect(roles.worker) as hostile:
            hostile.execute("SELECT pg_advisory_lock(%s, 0), pg_advisory_lock(%s, %s)", [LOCK_CLASS] * 2 + [dead])
            await asyncio.sleep(0.01)

            assert await reap(database, 0, stale=0, gone=0, spared=0) == [dead]


async def test_it_cannot_keep_nodes_from_giving_up_the_dead_by_calling_itself_as_they_do(roles: Roles) -> None:
    async with Database(roles.node) as database:
        dead = await node(database)
        with psycopg.connect(roles.worker, application_name=f"bullpen node {dead}"):
            await asyncio.sleep(0.01)

            assert await reap(database, 0, stale=0, gone=0, spared=0) == [dead]


async def test_it_cannot_make_a_dead_owner_look_alive(roles: Roles) -> None:
    """Everybody sees which locks there are."""
    mine = "SELECT (classid::bigint << 32 | objid::bigint) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    owner = this_process()
    with PostgresStore(roles.node) as other:
        with PostgresStore(roles.node) as store:
            store.create("c", team="t", team_file="", started_at=0)
            store.claim("c", owner, is_alive=lambda _: False)
            with psycopg.connect(roles.worker, autocommit=True) as connection:
                (key,) = connection.execute(mine).fetchall()[0]
            assert other.is_locked(owner)
        with psycopg.connect(roles.worker, autocommit=True) as hostile:
            hostile.execute("SELECT pg_advisory_lock(%s)", [key])

            assert other.is_locked(owner) is False


async def test_it_cannot_end_or_hear_of_what_another_role_runs(roles: Roles) -> None:
    async with Database(roles.node) as nodes, Database(roles.worker) as database:
        other = await worker(nodes, POOL)
        await place(nodes, an_order(), other)
        order = await next_order(nodes, other, new_attempt())
        assert order is not None
        mine = await worker(database, POOL)

        assert not await end(database, mine, order.key, FAILED)
        assert not await database.do("SELECT * FROM listener_of(%s, %s, %s)", mine, *order.key)
        await leave_word(nodes, other, order.key, Told("x", "for that worker only"))
        assert not await database.do("SELECT * FROM words_of(%s, %s, %s, 0)", mine, *order.key)
        assert await nodes.do("SELECT count(*) FROM words_of(%s, %s, %s, 0)", other, *order.key) == [(1,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await leave_word(database, other, order.key, Told("x", "forged"))
        for query in (
            "SELECT end_order(%s, %s, %s, 'ended', '')",
            "SELECT * FROM listener_of(%s, %s, %s)",
            "SELECT * FROM words_of(%s, %s, %s, 0)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await database.do(query, other, *order.key)
        await database.do("SELECT leave_lines(%s, %s, %s, 1, %s)", mine, *order.key, [b"forged"])
        assert await nodes.do("SELECT count(*) FROM lines") == [(0,)]


def test_a_role_that_could_deceive_nodes_may_not_serve(roles: Roles) -> None:
    """Before PostgreSQL 15, everybody may make functions where the tables of conversations are."""
    name = roles.worker.partition("//")[2].partition(":")[0]
    with psycopg.connect(roles.superuser) as connection:
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege, match="in the schema public, which nodes use")
    with psycopg.connect(roles.node) as connection, refused:
        connection.execute("SELECT bullpen_cluster.let_serve(%s, 'other')", [name])


def test_what_it_says_of_itself_has_a_limit(roles: Roles) -> None:
    query = "SELECT bullpen_cluster.join_cluster('worker', 'w', '', %s::text[], %s)"
    with psycopg.connect(roles.worker) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(query, [[POOL], bytes(2 * 1024 * 1024)])


def test_lines_without_an_end_do_not_fill_the_memory_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST_BYTES", 10_000)
    heard: list[Line] = []
    hearing = lines.Hearing("token", heard.append)
    encoded = msgspec.msgpack.encode(Wrote(bytes(1_000)))
    for number in range(1, 100):
        hearing.hear(number, encoded)

    assert len(heard) == 10_000 // len(encoded)
    assert hearing.heard == 99
