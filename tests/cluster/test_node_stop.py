"""A node that is stopped loses nothing: what it has ordered is ended by the next owner, at whatever moment it stops."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.cluster.processes import Processes
from tests.cluster.stage import WorkerStage
from tests.cluster.test_remote_agent import Seen, opened, until_said

from bullpen.conversation.best_of import BestOfSeveral
from bullpen.errors import StoreFailed
from bullpen.store.postgres.store import PostgresStore

HELLO = [{"say": "Hello."}]


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


def orders(url: str) -> list[tuple[Any, ...]]:
    """Return the turns that are ordered."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT turn FROM bullpen_cluster.orders").fetchall()


async def until_replied(stage: WorkerStage, team: Path, conversation_id: str) -> None:
    """Open a conversation at another node: the turn that was left is ended there, and ran once."""
    async with opened(stage.url, team, conversation_id) as conversation:
        assert await until_said(conversation, "Hello.") == [("kim", "Hi."), ("max", "Hello.")]
        assert not conversation.undecided
        assert conversation.paused is None
    assert stage.started() == ["max"]


async def test_a_turn_whose_order_is_being_committed_is_left(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = stage.write_team(max=HELLO)
    stage.write_file()
    begins, may_begin = threading.Event(), threading.Event()
    start_turn = PostgresStore.start_turn

    def late(store: PostgresStore, *given: Any, **others: Any) -> Any:
        begins.set()
        may_begin.wait()
        return start_turn(store, *given, **others)

    monkeypatch.setattr(PostgresStore, "start_turn", late)
    context = opened(stage.url, team)
    conversation = await context.__aenter__()
    await conversation.say("Hi.")
    await asyncio.to_thread(begins.wait)

    closing = asyncio.create_task(conversation.close())
    await asyncio.sleep(0)
    may_begin.set()
    await closing
    await context.__aexit__(None, None, None)

    assert orders(stage.url) == [("1",)]
    stage.start_worker()
    await until_replied(stage, team, conversation.id)


async def test_an_order_stays_whose_end_is_not_stored(stage: WorkerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    team = stage.write_team(max=HELLO)
    stage.write_file()
    stage.start_worker()
    replies = asyncio.Event()
    append, loop = PostgresStore.append, asyncio.get_running_loop()

    def fail(store: PostgresStore, *given: Any, **others: Any) -> Any:
        if others.get("finishes") is None:
            return append(store, *given, **others)
        loop.call_soon_threadsafe(replies.set)
        raise StoreFailed(store.path, "no", "Nothing.")

    with monkeypatch.context() as patched:
        patched.setattr(PostgresStore, "append", fail)
        async with opened(stage.url, team) as conversation:
            await conversation.say("Hi.")
            await replies.wait()

    assert orders(stage.url) == [("1",)]
    await until_replied(stage, team, conversation.id)


async def test_an_owner_that_is_stopped_while_it_adopts_leaves_the_order(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = stage.write_team(max=[stage.waits, *HELLO])
    stage.write_file()
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        while not stage.started():
            await asyncio.sleep(0.01)

    async def stopped(*_: object, **__: object) -> None:
        # Until it follows the turn.
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(BestOfSeveral, "advance", stopped)
        with pytest.raises(asyncio.CancelledError):
            await opened(stage.url, team, conversation.id).__aenter__()

    stage.go.touch()
    await until_replied(stage, team, conversation.id)


async def test_a_turn_that_a_person_cancels_leaves_no_order(stage: WorkerStage) -> None:
    team = stage.write_team(max=[{"say": "Half."}, {"hang": True}])
    stage.write_file()
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        while seen.text != "Half.":
            await asyncio.sleep(0.01)
        await conversation.cancel("1", by="kim")
        assert [ended.state for ended in seen.ended()] == ["cancelled"]
        while orders(stage.url):
            await asyncio.sleep(0.01)
