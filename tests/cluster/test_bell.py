"""A bell wakes who waits, and never keeps somebody who is told to stop."""

import asyncio

import psycopg

from bullpen.cluster.bell import LOCK_CLASS, Bell, ring
from bullpen.cluster.database import Database


async def test_waiting_for_a_ring_ends_with_it_or_after_a_while() -> None:
    ringing = asyncio.Event()
    await ring(ringing, 0.01)
    ringing.set()
    await ring(ringing, 3600)


async def test_who_waits_again_and_again_stops_at_the_first_word() -> None:
    async def wait_for_ever(ringing: asyncio.Event) -> None:
        while True:
            await ring(ringing, 3600)
            ringing.clear()

    for steps in range(6):
        ringing = asyncio.Event()
        waiting = asyncio.create_task(wait_for_ever(ringing))
        for _ in range(3):
            await asyncio.sleep(0)
        ringing.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_the_lock_of_a_process_is_taken_when_its_last_connection_is_gone(url: str) -> None:
    """The server may take long to notice that a connection is broken, and holds the lock for it until then."""
    held = "SELECT FROM pg_locks WHERE classid = %s AND objid = 7 AND objsubid = 2 AND granted AND pid <> %s"
    async with Database(url) as database:
        with psycopg.connect(url, autocommit=True) as broken:
            pid = broken.info.backend_pid
            broken.execute("SELECT pg_advisory_lock(%s, 7)", [LOCK_CLASS])
            bell = Bell(url, "a")
            with bell.waiting("a") as ringing:
                listening = asyncio.create_task(bell.listen(7))
                await ringing.wait()
                assert await database.do(held, LOCK_CLASS, pid) == []
        while not await database.do(held, LOCK_CLASS, pid):
            await asyncio.sleep(0.01)

        with bell.waiting("a") as ringing:
            await database.do("NOTIFY a")
            await ringing.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
