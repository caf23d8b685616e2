"""A worker in the process of the test, so that this sees inside."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest
from tests.cluster.stage import POOL, WorkerStage

from bullpen.agents.asked_time import AskedTime
from bullpen.agents.runner import Reply, run_turn
from bullpen.cluster import worker as worker_module
from bullpen.cluster.worker import Worker
from bullpen.cluster.worker_events import Watch, nobody_watches
from bullpen.cluster.worker_file_reader import read_worker_file


@asynccontextmanager
async def working(stage: WorkerStage, watch: Watch = nobody_watches) -> AsyncIterator[asyncio.Event]:
    """Let a worker work here, until the context is left; yield what stops it."""
    stopping = asyncio.Event()
    worker = Worker(url=stage.url, pools=(POOL,), file=read_worker_file(stage.file), watch=watch)
    folder = stage.file.parent
    homes = {"BULLPEN_HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
    with patch.dict(os.environ, homes):
        running = asyncio.create_task(worker.run(stopping))
        try:
            yield stopping
        finally:
            stopping.set()
            await running


def times_of_turns(monkeypatch: pytest.MonkeyPatch) -> list[AskedTime]:
    """Return what will know of each turn that a worker runs here how long it has waited for answers."""
    times: list[AskedTime] = []

    async def run(*given: Any, **others: Any) -> Reply:
        times.append(others["asked"])
        return await run_turn(*given, **others)

    monkeypatch.setattr(worker_module, "run_turn", run)
    return times
