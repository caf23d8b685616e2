"""A conversation goes on after a commit of which its node did not hear that it was done."""

import asyncio
from pathlib import Path

import pytest
from tests.cluster.processes import Processes
from tests.cluster.stage import WorkerStage
from tests.cluster.test_remote_agent import opened, said_in
from tests.store.postgres.unheard import way_to

from bullpen.store.postgres.store import PostgresStore


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


@pytest.mark.parametrize("commits", [1, 2, 3])
async def test_it_goes_on(stage: WorkerStage, commits: int) -> None:
    team = stage.write_team(max=[{"say": "Hello."}])
    stage.write_file()
    stage.start_worker()
    with way_to(stage.url) as way:
        async with asyncio.timeout(60), opened(way.url, team) as conversation:
            way.break_after(commits)
            for words, messages in (("Hi.", 2), ("And now?", 4)):
                await conversation.say(words)
                while len(said := await said_in(conversation)) < messages:
                    await asyncio.sleep(0.05)
            while conversation.running:
                await asyncio.sleep(0.05)
        assert way.broken == 1
    assert said == [("kim", "Hi."), ("max", "Hello."), ("kim", "And now?"), ("max", "Hello.")]
    assert stage.started() == ["max", "max"]
    with PostgresStore(stage.url) as store:
        assert [turn.state for turn in store.turns(conversation.id)] == ["done", "done"]
        assert store.fsck() == []
