"""What is done in the background begins again if it fails, and ends with its context."""

import asyncio

import pytest

from bullpen.cluster import doing as module
from bullpen.cluster.doing import doing


async def test_it_begins_again_if_it_fails_and_not_if_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0)
    calls: list[str] = []

    async def fails_twice() -> None:
        calls.append("fails")
        if calls.count("fails") < 3:
            raise ValueError("a bug")

    async def goes_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            calls.append("ended")

    async with doing(fails_twice, goes_on):
        while calls.count("fails") < 3:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert "ended" not in calls

    assert sorted(calls) == ["ended", "fails", "fails", "fails"]
