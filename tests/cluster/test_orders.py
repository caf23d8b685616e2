"""Orders are handed out once, end once, and are jobs of procrastinate in the same commit."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any, LiteralString

import msgspec
import procrastinate
import psycopg
import pytest
from tests.cluster.stage import place

from bullpen.cluster import outcomes
from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.orders import (
    GivenUp,
    Order,
    Work,
    adopt,
    cancel,
    new_attempt,
    next_order,
    open_to_all,
    settle,
    settle_others,
)
from bullpen.cluster.outcomes import Outcome, Result, end, outcome_of
from bullpen.cluster.words import Told, leave_word
from bullpen.store.postgres import order_rows
from bullpen.turn_events import Failed

FAILED = Outcome(kind="ended", result=Result(failure=Failed(kind="crashed", message="It failed.")))


def an_order(turn: str = "1", pool: str = "gpu-box", conversation: str = "calm-oak") -> Order:
    work = Work(member="max", prompt="Hello.", agent="claude", idle_timeout=600, total_timeout=3600)
    return Order(conversation=conversation, turn=turn, pool=pool, packed=msgspec.msgpack.encode(work))


def row(order: Order) -> dict[str, object]:
    return {
        "id": order.conversation,
        "turn": order.turn,
        "pool": order.pool,
        "worker": "",
        "work": order.packed,
        "notes": b"",
        "token": "t",
        "node": 0,
    }


async def worker(database: Database, *pools: str) -> int:
    rows = await database.do("SELECT join_cluster('worker', 'w', '', %s::text[], '')", list(pools))
    joined: int = rows[0][0]
    return joined


def run(url: str, work: Callable[[Database], Coroutine[Any, Any, None]]) -> None:
    async def opened() -> None:
        async with Database(url) as database:
            await work(database)

    asyncio.run(opened())


def test_an_order_is_handed_out_to_its_pool_once(url: str) -> None:
    async def work(database: Database) -> None:
        first, second, other = [await worker(database, pool) for pool in ("gpu-box", "gpu-box", "other")]
        await place(database, an_order())

        assert await next_order(database, other, new_attempt()) is None
        taken = await next_order(database, first, new_attempt())
        assert taken is not None
        assert taken.work.prompt == "Hello."
        assert await next_order(database, second, new_attempt()) is None
        assert await next_order(database, first, new_attempt()) is None

    run(url, work)


def test_asking_again_with_the_same_attempt_returns_the_same_order(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order("1"))
        await place(database, an_order("2"))
        attempt = new_attempt()

        assert await next_order(database, one, attempt) == await next_order(database, one, attempt)

    run(url, work)


def test_a_late_attempt_is_given_nothing_when_its_order_has_ended(url: str) -> None:
    """It was sent on a connection that is gone: nobody would run what it is given."""

    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        early, late = new_attempt(), new_attempt()
        await place(database, an_order("1"), one)
        taken = await next_order(database, one, late)
        assert taken is not None
        await end(database, one, taken.key, FAILED)
        await settle(database, one, *taken.key)
        await place(database, an_order("2"))

        assert await next_order(database, one, late) is None
        assert await next_order(database, one, early) is None
        other = await next_order(database, one, new_attempt())
        assert other is not None
        assert other.turn == "2"

    run(url, work)


def test_the_same_attempt_on_two_connections_at_once_takes_one_order(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        for turn in range(20):
            await place(database, an_order(str(turn)))

        for _ in range(10):
            attempt = new_attempt()
            first, *others = await asyncio.gather(*(next_order(database, one, attempt) for _ in range(4)))
            assert first is not None
            assert others == [first] * 3

        assert await database.do("SELECT status::text, count(*) FROM procrastinate_jobs GROUP BY 1 ORDER BY 1") == [
            ("doing", 10),
            ("todo", 10),
        ]

    run(url, work)


def test_looking_for_an_order_in_vain_writes_nothing(url: str) -> None:
    """Else each look would wait for the disk, and workers look often."""

    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order(pool="other"))
        with psycopg.connect(url, options="-c search_path=bullpen_cluster") as connection:
            connection.execute("SELECT FROM next_order(%s, %s, false)", [one, new_attempt()])
            assert connection.execute("SELECT pg_current_xact_id_if_assigned()").fetchone() == (None,)

    run(url, work)


def test_what_nobody_waits_for_does_not_wait_for_the_disk(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order(), one)
        order = await next_order(database, one, new_attempt())
        assert order is not None

        def setting(query: LiteralString, *given: object) -> str:
            with psycopg.connect(url, options="-c search_path=bullpen_cluster") as connection:
                connection.execute(query, given)
                found = connection.execute("SHOW synchronous_commit").fetchone()
                assert found is not None
                return str(found[0])

        assert setting("SELECT beat(%s)", one) == "off"
        assert setting("SELECT leave_lines(%s, %s, %s, 1, '{}')", one, *order.key) == "off"
        assert setting("SELECT end_order(%s, %s, %s, 'ended', '')", one, *order.key) == "on"
        # One that has not ended is cancelled, which must not be lost.
        await place(database, an_order("2"), one)
        assert setting("SELECT settle_order(%s, %s, %s)", one, *an_order("2").key) == "on"
        assert setting("SELECT settle_order(%s, %s, %s)", one, *order.key) == "off"

    run(url, work)


def test_an_order_that_is_placed_twice_is_one_order(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order())
        await place(database, an_order())

        assert await next_order(database, one, new_attempt()) is not None
        assert await next_order(database, one, new_attempt()) is None

    run(url, work)


def test_a_job_that_is_delivered_twice_runs_once(url: str) -> None:
    """Whatever the engine does: the key of `runs` decides."""

    async def work(database: Database) -> None:
        first, second = await worker(database, "gpu-box"), await worker(database, "gpu-box")
        await place(database, an_order())
        assert await next_order(database, first, new_attempt()) is not None

        await database.do("UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL")

        assert await next_order(database, second, new_attempt()) is None
        assert await next_order(database, first, new_attempt()) is None

    run(url, work)


def test_many_workers_at_once_get_each_order_once(url: str) -> None:
    async def work(database: Database) -> None:
        workers = [await worker(database, "gpu-box") for _ in range(8)]
        for turn in range(40):
            await place(database, (an_order(str(turn))))

        async def take_all(one: int) -> list[str]:
            taken: list[str] = []
            while (order := await next_order(database, one, new_attempt())) is not None:
                taken.append(order.turn)
            return taken

        turns = [turn for taken in await asyncio.gather(*map(take_all, workers)) for turn in taken]

        assert sorted(turns, key=int) == [str(turn) for turn in range(40)]

    run(url, work)


def test_a_turn_has_one_end(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order())
        order = await next_order(database, one, new_attempt())
        assert order is not None

        ends = await asyncio.gather(*(end(database, one, order.key, FAILED) for _ in range(8)))

        assert sorted(ends) == [False] * 7 + [True]
        assert await database.do("SELECT count(*) FROM procrastinate_jobs") == [(0,)]

    run(url, work)


def test_whoever_does_not_run_a_turn_cannot_end_it(url: str) -> None:
    async def work(database: Database) -> None:
        one, other = await worker(database, "gpu-box"), await worker(database, "gpu-box")
        await place(database, an_order())
        order = await next_order(database, one, new_attempt())
        assert order is not None

        assert not await end(database, other, order.key, FAILED)

    run(url, work)


def test_the_owner_hears_of_the_end(url: str) -> None:
    async def work(database: Database) -> None:
        bell = Bell(url, outcomes.CHANNEL)
        listening = asyncio.create_task(bell.listen(1))
        one = await worker(database, "gpu-box")
        await place(database, an_order())
        order = await next_order(database, one, new_attempt())
        assert order is not None
        waiting = asyncio.create_task(outcome_of(database, bell, order.key))
        while not bell._waiting:
            await asyncio.sleep(0.01)
        assert not waiting.done()

        await end(database, one, order.key, FAILED)

        assert await waiting == FAILED
        listening.cancel()

    run(url, work)


def test_cancelling_what_does_not_run_ends_it(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order(), one)

        assert await cancel(database, one, *an_order().key)

        assert (await outcome_of(database, Bell(url), an_order().key)).kind == "cancelled"
        assert await next_order(database, one, new_attempt()) is None

    run(url, work)


def test_settling_what_has_not_ended_cancels_it(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order("1"), one)
        await next_order(database, one, new_attempt())
        await place(database, an_order("2"), one)

        await settle(database, one, *an_order("1").key)
        await settle(database, one, *an_order("2").key)

        assert an_order("1").key in await database.do("SELECT * FROM beat(%s)", one)
        assert await next_order(database, one, new_attempt()) is None
        assert await database.do("SELECT turn FROM orders") == [("1",)]

    run(url, work)


def test_cancelling_what_runs_is_told_to_its_worker(url: str) -> None:
    async def work(database: Database) -> None:
        one, other = await worker(database, "gpu-box"), await worker(database, "gpu-box")
        await place(database, an_order(), other)
        await next_order(database, one, new_attempt())
        assert len(await database.do("SELECT * FROM beat(%s)", one)) == 1

        assert await cancel(database, other, *an_order().key)

        assert an_order().key in await database.do("SELECT * FROM beat(%s)", one)
        assert an_order().key not in await database.do("SELECT * FROM beat(%s)", other)

    run(url, work)


def test_what_an_earlier_owner_asks_for_late_is_refused(url: str) -> None:
    """It lives and its order was adopted, or it was given up and nobody has adopted that yet."""

    async def try_all(database: Database, former: int) -> None:
        key = an_order().key
        assert not await cancel(database, former, *key)
        await settle(database, former, *key)
        await open_to_all(database, former, *key)
        await leave_word(database, former, key, Told("x", "late"))
        assert await database.do("SELECT worker FROM orders") == [("w",)]
        assert await database.do("SELECT FROM outcomes") == []
        assert await database.do("SELECT FROM words") == []

    async def work(database: Database) -> None:
        first, second = await worker(database), await worker(database)
        await place(database, an_order(), first)
        await database.do("UPDATE orders SET worker = 'w'")
        assert await adopt(database, second, *an_order().key) is not None
        await try_all(database, first)

        await database.do("SELECT leave_cluster(%s)", second)
        await try_all(database, second)
        await settle_others(database, second, "calm-oak", [])
        with pytest.raises(GivenUp):
            await adopt(database, second, *an_order().key)
        await database.do("UPDATE orders SET is_errand = true")
        assert await database.do("SELECT errands_left(%s, 'calm-oak')", second) == []
        assert await database.do("SELECT owner, worker FROM orders") == [(second, "w")]

        assert await adopt(database, first, *an_order().key) is not None
        assert await cancel(database, first, *an_order().key)
        await settle(database, first, *an_order().key)
        assert await database.do("SELECT FROM orders") == []

    run(url, work)


def test_what_comes_after_an_order_is_settled_is_refused(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        await place(database, an_order(), one)
        order = await next_order(database, one, new_attempt())
        assert order is not None

        await end(database, one, order.key, FAILED)
        await settle(database, one, *order.key)

        assert not await end(database, one, order.key, FAILED)
        assert await next_order(database, one, new_attempt()) is None
        assert await database.do("SELECT count(*) FROM orders") == [(0,)]

    run(url, work)


def test_an_order_and_what_it_belongs_to_are_stored_together_or_not_at_all(url: str) -> None:
    async def work(database: Database) -> None:
        one = await worker(database, "gpu-box")
        with psycopg.connect(url) as connection:
            connection.execute(order_rows.PLACE, row(an_order("1")))
            connection.rollback()
            connection.execute(order_rows.PLACE, row(an_order("2")))

        order = await next_order(database, one, new_attempt())
        assert order is not None
        assert order.turn == "2"
        assert await next_order(database, one, new_attempt()) is None

    run(url, work)


def test_procrastinate_knows_our_orders_as_its_jobs(url: str) -> None:
    """The functions of procrastinate that we call are not documented, so this is what we need of them."""

    async def work(database: Database) -> None:
        connector = procrastinate.PsycopgConnector(conninfo=url, kwargs={"options": "-c search_path=bullpen_cluster"})
        app = procrastinate.App(connector=connector)
        async with app.open_async():
            await place(database, an_order("1"))
            await place(database, an_order("2", pool="other"))
            jobs = list(await app.job_manager.list_jobs_async())
            assert [(job.queue, job.task_name, job.status) for job in jobs] == [
                ("gpu-box", "bullpen.turn", "todo"),
                ("other", "bullpen.turn", "todo"),
            ]
            one = await worker(database, "gpu-box")
            await next_order(database, one, new_attempt())
            assert [job.status for job in await app.job_manager.list_jobs_async(queue="gpu-box")] == ["doing"]
            assert not list(await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=5))

    run(url, work)


def test_a_role_reaches_only_the_orders_of_its_pools(url: str) -> None:
    role = f"worker_{url.rpartition('_')[2]}"
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'".encode())
        connection.execute("SET search_path = bullpen_cluster")
        connection.execute("SELECT let_serve(%s, 'gpu-box')", [role])

    async def work(database: Database) -> None:
        async with Database(url) as node:
            await place(node, an_order("1"))
            await place(node, an_order("2", pool="other"))
            foreign = await worker(node, "other")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await worker(database, "gpu-box", "other")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await next_order(database, foreign, new_attempt())
        for table in ("orders", "runs", "outcomes", "procrastinate_jobs", "processes"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await database.do(f"SELECT * FROM {table}".encode())  # type: ignore[arg-type]
        one = await worker(database, "gpu-box")
        order = await next_order(database, one, new_attempt())
        assert order is not None
        assert order.turn == "1"
        assert await next_order(database, one, new_attempt()) is None
        assert await end(database, one, order.key, FAILED)

    run(re.sub("//[^@]*@", f"//{role}:x@", url), work)
    with psycopg.connect(url) as connection:
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
