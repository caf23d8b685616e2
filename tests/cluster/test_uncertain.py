"""A conversation goes on after the server was away, also in a commit of which its node did not hear the end."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.processes import Processes
from tests.cluster.stage import WorkerStage
from tests.cluster.test_remote_agent import opened, said_in, until_said
from tests.store.postgres.unheard import way_to

from bullpen.app import open_conversation
from bullpen.cluster.node import open_node
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.errors import StoreUnreachable
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.thread import StoreThread
from bullpen.team.file import load_team


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


@pytest.mark.parametrize("commits", [1, 2, 3])
async def test_it_goes_on(stage: WorkerStage, commits: int) -> None:
    team = stage.write_team(max=[{"say": "Hello."}])
    stage.write_file()
    stage.start_worker()
    with way_to(stage.url) as way:
        async with opened(way.url, team) as conversation:
            way.break_after(commits)
            for words, messages in (("Hi.", 2), ("And now?", 4)):
                await conversation.say(words)
                while len(said := await said_in(conversation)) < messages:
                    await asyncio.sleep(0.01)
            while conversation.running:
                await asyncio.sleep(0.01)
        assert way.broken == 1
    assert said == [("kim", "Hi."), ("max", "Hello."), ("kim", "And now?"), ("max", "Hello.")]
    assert stage.started() == ["max", "max"]
    with PostgresStore(stage.url) as store:
        assert [turn.state for turn in store.turns(conversation.id)] == ["done", "done"]
        assert store.fsck() == []


async def test_a_turn_begins_by_itself_when_the_server_is_back(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody clicks in every conversation because the server was started again."""
    done, times = PostgresStore.start_turn, iter(range(100))

    def away(*given: Any, **others: Any) -> Any:
        if next(times) < 2:
            raise StoreUnreachable("the server", "it is being started", has_answered=False)
        return done(*given, **others)

    team, thread = stage.write_team(max=[{"say": "Hello."}]), StoreThread()
    stage.write_file()
    stage.start_worker()
    async with open_node(stage.url, name="n") as node:
        with node.open_store() as store:
            remote = partial(RemoteTeam, node)
            opening = open_conversation(load_team(team), store, thread, remote=remote, node=node.id)
            async with opening as conversation:
                monkeypatch.setattr(PostgresStore, "start_turn", away)
                await conversation.say("Hi.")
                await until_said(conversation, "Hello.")
                assert conversation.paused is None
    thread.close()
