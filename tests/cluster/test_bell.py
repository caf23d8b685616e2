"""A bell wakes who waits, and never keeps somebody who is told to stop."""

import asyncio

from bullpen.cluster.bell import ring


async def test_waiting_for_a_ring_ends_with_it_or_after_a_while() -> None:
    ringing = asyncio.Event()
    await ring(ringing, 0.01)
    ringing.set()
    await asyncio.wait_for(ring(ringing, 60), 5)


async def test_who_waits_again_and_again_stops_at_the_first_word() -> None:
    async def wait_for_ever(ringing: asyncio.Event) -> None:
        while True:
            await ring(ringing, 60)
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
        done, _ = await asyncio.wait([waiting], timeout=1)
        assert done, steps
