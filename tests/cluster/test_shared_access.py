"""Who has access is changed by one node at a time, and a frozen one does not keep the others from it."""

import asyncio
import threading

import pytest

from bullpen.cluster import shared_access as module
from bullpen.cluster.database import Database
from bullpen.cluster.shared_access import SharedAccess


async def test_a_node_that_is_frozen_in_a_change_does_not_keep_others_from_theirs(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen, other = SharedAccess(url), SharedAccess(url)
    has_begun, is_over = threading.Event(), threading.Event()

    def slow(record: bytes) -> bytes:
        has_begun.set()
        is_over.wait()
        return record + b"late"

    with monkeypatch.context() as patch:
        patch.setattr(module, "MOST_SECONDS", 1)
        changing = asyncio.create_task(asyncio.to_thread(frozen.change, slow))
        await asyncio.to_thread(has_begun.wait)
    monkeypatch.setattr(module, "MOST_SECONDS", 60)
    await asyncio.to_thread(other.change, lambda record: record + b"in time")
    is_over.set()

    with pytest.raises(OSError, match="idle-in-transaction"):
        await changing
    other.look()
    assert other.read() in (None, b"in time")
    frozen.look()
    assert frozen.read() == b"in time"


class Looking(SharedAccess):
    """Counts its looks."""

    looks = 0

    async def _look_in(self, database: Database) -> None:
        self.looks += 1
        await super()._look_in(database)


async def test_one_look_at_what_others_changed_is_for_all_who_wait(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", 60)
    here, other = Looking(url), SharedAccess(url)
    here.look()
    assert not await here.catch_up()
    async with Database(url) as database:
        here._database = database
        await asyncio.to_thread(other.change, lambda record: record + b"new")

        assert await asyncio.gather(*(here.catch_up() for _ in range(200))) == [True] * 200

        assert here.read() == b"new"
        assert await asyncio.gather(*(here.catch_up() for _ in range(200))) == [False] * 200
        assert here.looks == 2
