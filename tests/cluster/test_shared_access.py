"""Who has access is changed by one node at a time, and a frozen one does not keep the others from it."""

import asyncio
import time

import pytest

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
