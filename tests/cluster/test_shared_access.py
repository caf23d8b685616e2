"""Who has access is changed by one node at a time, and a frozen one does not keep the others from it."""

import asyncio
import time
from functools import partial

import pytest

from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.doing import doing
from bullpen.cluster.shared_access import MOST_SECONDS, SharedAccess


async def test_a_node_that_is_frozen_in_a_change_does_not_keep_others_from_theirs(url: str) -> None:
    frozen, other = SharedAccess(url), SharedAccess(url)

    def slow(record: bytes) -> bytes:
        time.sleep(MOST_SECONDS + 2)
        return record + b"late"

    changing = asyncio.create_task(asyncio.to_thread(frozen.change, slow))
    await asyncio.sleep(1)
    await asyncio.to_thread(other.change, lambda record: record + b"in time")

    with pytest.raises(OSError, match="idle-in-transaction"):
        await changing
    other.look()
    assert other.read() in (None, b"in time")
    frozen.look()
    assert frozen.read() == b"in time"


async def test_one_look_at_what_others_changed_is_for_all_who_wait(url: str) -> None:
    here, other = SharedAccess(url), SharedAccess(url)
    here.look()
    assert not await here.catch_up()
    async with Database(url) as database, doing(partial(here.watch, database, Bell(url))):
        await asyncio.sleep(0.2)
        await asyncio.to_thread(other.change, lambda record: record + b"new")
        began = time.monotonic()

        assert await asyncio.gather(*(here.catch_up() for _ in range(200))) == [True] * 200

        assert here.read() == b"new"
        assert await asyncio.gather(*(here.catch_up() for _ in range(200))) == [False] * 200
        assert time.monotonic() - began < 2
