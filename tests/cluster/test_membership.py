"""Who is dead or frozen is given up; who only lost a connection is not."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
from tests.cluster.processes import Processes
from tests.cluster.stage import place
from tests.cluster.test_orders import FAILED, an_order, worker

from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.membership import Process, is_alive, joined, reap
from bullpen.cluster.orders import new_attempt, next_order
from bullpen.cluster.outcomes import end, outcome_of
from bullpen.testing.postgres import PostgresServer

NODE = "tests.cluster.node_process"
NEVER = 3600.0
"""Seconds after which nobody is late in a test."""


async def be_silent(database: Database, process_id: int) -> None:
    """Let nothing have been heard of a process for an hour."""
    await database.do("UPDATE processes SET beat_at = clock_timestamp() - interval '1 hour' WHERE id = %s", process_id)


async def until_heard(database: Database, process_id: int) -> None:
    """Wait until a process that was silent has said that it lives."""
    heard = "SELECT FROM processes WHERE id = %s AND beat_at > clock_timestamp() - interval '30 minutes'"
    await until(lambda: database.do(heard, process_id))


async def until(condition: Callable[[], Coroutine[Any, Any, object]]) -> None:
    while not await condition():
        await asyncio.sleep(0.01)


async def test_a_dead_process_is_given_up_by_its_lock(url: str, processes: Processes) -> None:
    async with Database(url) as database:
        node = processes.start(NODE, url)
        process_id = int(node.line())
        await until(lambda: database.do("SELECT FROM pg_locks WHERE objid = %s AND objsubid = 2", process_id))
        assert await reap(database, 0, stale=NEVER, gone=0, spared=0) == []
        assert await is_alive(database, process_id)

        node.kill()

        # Only the lock tells them apart: by its beats it would live for an hour.
        await until(lambda: reap(database, 0, stale=NEVER, gone=0, spared=0))
        assert not await is_alive(database, process_id)


async def test_a_frozen_process_is_given_up_by_its_beats(url: str, processes: Processes) -> None:
    async with Database(url) as database:
        node = processes.start(NODE, url)
        process_id = int(node.line())
        await until(lambda: database.do("SELECT FROM pg_locks WHERE objid = %s AND objsubid = 2", process_id))
        await be_silent(database, process_id)
        await until_heard(database, process_id)
        assert await reap(database, 0, stale=60, gone=NEVER, spared=0) == []

        node.freeze()

        # What it said last may still be on its way.
        while not await reap(database, 0, stale=60, gone=NEVER, spared=0):
            await be_silent(database, process_id)
        assert not await is_alive(database, process_id)
        # It learns that it was given up, and joins again as somebody else.
        node.wake()
        again = int(await asyncio.to_thread(node.line))
        assert again != process_id
        assert await is_alive(database, again)


async def test_one_that_lost_only_its_connection_lives(url: str) -> None:
    async with Database(url) as database, joined(database, Bell(url), Process(kind="node", name="n")) as member:
        lock = "SELECT pid FROM pg_locks WHERE objid = %s AND objsubid = 2"
        await until(lambda: database.do(lock, member.id))
        before = (await database.do(lock, member.id))[0][0]

        await database.do("SELECT pg_terminate_backend(%s)", before)

        await until(lambda: database.do(f"{lock} AND pid <> %s", member.id, before))
        assert await reap(database, 0, spared=0) == []
        assert await is_alive(database, member.id)


async def test_one_whose_connections_are_all_in_use_lives(url: str) -> None:
    """As when all turns of a worker end at once, and have said much."""
    async with (
        Database(url, most=2) as database,
        Database(url) as other,
        joined(database, Bell(url), Process(kind="worker", name="w")) as member,
    ):
        with psycopg.connect(url) as blocking:
            blocking.execute("SELECT pg_advisory_lock(1, 1)")
            busy = [asyncio.create_task(database.do("SELECT pg_advisory_lock_shared(1, 1)")) for _ in range(4)]
            waiting = "SELECT FROM pg_locks WHERE classid = 1 AND objid = 1 AND NOT granted"
            while len(await other.do(waiting)) < 2:
                await asyncio.sleep(0.01)

            await be_silent(other, member.id)
            await until_heard(other, member.id)

            assert not any(task.done() for task in busy)
        await asyncio.gather(*busy)


async def test_nobody_gives_up_itself(url: str) -> None:
    async with Database(url) as database, joined(database, Bell(url), Process(kind="node", name="n")) as member:
        other = await worker(database, "gpu-box")
        while await reap(database, member.id, stale=60, gone=60, spared=0) != [other]:
            await be_silent(database, other)
            await be_silent(database, member.id)
        await until_heard(database, member.id)
        assert not member.given_up.is_set()


async def test_who_was_given_up_gives_up_nobody(url: str) -> None:
    async with Database(url) as database:
        first, second = await worker(database, "gpu-box"), await worker(database, "gpu-box")
        await be_silent(database, first)
        assert await reap(database, second, stale=60, gone=60, spared=0) == [first]
        await be_silent(database, second)
        assert await reap(database, first, stale=60, gone=60, spared=0) == []


async def test_who_has_only_joined_has_more_time(url: str) -> None:
    """On a busy machine seconds pass before its first beat; nodes that start together see each other so."""
    async with Database(url) as database:
        joins = await worker(database, "gpu-box")
        joined_in = "began_at = now() + interval '1 hour', beat_at = now() + interval '1 hour'"
        await database.do(f"UPDATE processes SET {joined_in} WHERE id = %s", joins)
        # In two hours it would be late, had it said once that it lives.
        assert await reap(database, 0, stale=-NEVER * 2, gone=NEVER, spared=0) == []

        await database.do("SELECT FROM beat(%s)", joins)
        assert await reap(database, 0, stale=-NEVER * 2, gone=NEVER, spared=0) == [joins]


async def test_who_leaves_is_not_alive(url: str) -> None:
    async with Database(url) as database:
        async with joined(database, Bell(url), Process(kind="node", name="n")) as member:
            assert await is_alive(database, member.id)
        assert not await is_alive(database, member.id)


async def test_what_a_worker_ran_is_lost_when_it_is_given_up_and_its_late_word_is_refused(url: str) -> None:
    async with Database(url) as database:
        one = await worker(database, "gpu-box")
        await place(database, an_order("1"))
        await place(database, an_order("2"))
        order = await next_order(database, one, new_attempt())
        assert order is not None

        await asyncio.sleep(0.01)
        assert await reap(database, 0, stale=0, gone=0, spared=0) == [one]

        assert (await outcome_of(database, Bell(url), order.key)).kind == "lost"
        assert not await end(database, one, order.key, FAILED)
        # It takes nothing any more, and what did not run goes to another one.
        assert await next_order(database, one, new_attempt()) is None
        other = await worker(database, "gpu-box")
        another = await next_order(database, other, new_attempt())
        assert another is not None
        assert another.turn == "2"


async def test_what_was_delivered_and_never_ran_is_handed_out_again(url: str) -> None:
    """If the engine delivers in one commit and we note the run in another: today both are one."""
    async with Database(url) as database:
        one = await worker(database, "gpu-box")
        await place(database, an_order())
        await next_order(database, one, new_attempt())
        await database.do("DELETE FROM runs")

        await asyncio.sleep(0.01)
        assert await reap(database, 0, stale=0, gone=0, spared=0) == [one]

        other = await worker(database, "gpu-box")
        assert await next_order(database, other, new_attempt()) is not None


async def test_nobody_is_given_up_right_after_a_restart_of_the_server(own_server: PostgresServer) -> None:
    url = own_server.url()
    async with Database(url) as database, joined(database, Bell(url), Process(kind="node", name="n")) as member:
        await until(lambda: database.do("SELECT FROM pg_locks WHERE objid = %s AND objsubid = 2", member.id))
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        await asyncio.to_thread(own_server.start)
        await database.do("SELECT 1")
        assert await reap(database, 0, stale=0, gone=0, spared=NEVER) == []

        await until(lambda: database.do("SELECT FROM pg_locks WHERE objid = %s AND objsubid = 2", member.id))

        assert await is_alive(database, member.id)
        assert await reap(database, 0, stale=0, gone=0, spared=0) == [member.id]
