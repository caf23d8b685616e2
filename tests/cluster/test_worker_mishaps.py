"""Whatever goes wrong in a worker, an order that it took has an end: nobody waits for ever."""

import asyncio
import zlib
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from tests.cluster.here import working
from tests.cluster.processes import Processes
from tests.cluster.stage import POOL, WorkerStage
from tests.cluster.test_remote_agent import Seen, opened
from tests.cluster.test_worker import node_on

from bullpen.agents.runner import Reply
from bullpen.cluster import worker as worker_module
from bullpen.cluster.file_desk import FileDesk
from bullpen.cluster.file_work import FileAnswer, FileWork, FindRoot
from bullpen.cluster.orders import Order, next_order
from bullpen.cluster.outcomes import Result, end
from bullpen.cluster.turn_log import MOST_SEGMENT_BYTES, Said, TurnLog, framed
from bullpen.store.base import Turn
from bullpen.turn_events import Finished, Started, Usage


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


async def test_a_turn_ends_though_nobody_can_be_told_of_it(stage: WorkerStage) -> None:
    """The terminal of a worker is gone, or its log is started again."""

    def broken(_: object) -> None:
        raise BrokenPipeError

    order = stage.order("1")
    stage.write_file()
    async with node_on(stage.url) as node, working(stage, broken):
        await node.place(order)

        assert (await node.outcome(order)).result.reply is not None


async def test_an_errand_ends_though_the_worker_has_a_bug(stage: WorkerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> bytes:
        raise RuntimeError("a bug")

    monkeypatch.setattr(FileDesk, "answer", wrong)
    stage.order("1")
    stage.write_file()
    packed = msgspec.msgpack.encode(FileWork(folder="project", ask=FindRoot()))
    errand = Order(conversation="calm-oak", turn="!1", pool=POOL, packed=packed)
    async with node_on(stage.url) as node, working(stage):
        await node.place(errand)

        answer = msgspec.msgpack.decode((await node.outcome(errand)).result.answer, type=FileAnswer)

        assert answer.problem == "failed"
        assert "a bug" in answer.reason


async def test_a_turn_ends_though_what_it_said_cannot_be_stored(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_large(*given: Any) -> bool:
        if given[-1].result.log:
            raise psycopg.errors.ProgramLimitExceeded("too large")
        return await end(*given)

    monkeypatch.setattr(worker_module, "end", too_large)
    order = stage.order("1")
    stage.write_file()
    async with node_on(stage.url) as node, working(stage):
        await node.place(order)

        failure = (await node.outcome(order)).result.failure

        assert failure is not None
        assert "too large" in failure.message


async def test_what_was_taken_in_the_moment_of_stopping_runs(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = asyncio.Event()

    async def slow(*given: Any, **others: Any) -> Order | None:
        order = await next_order(*given, **others)
        if order is not None:
            await stops.wait()
        return order

    monkeypatch.setattr(worker_module, "next_order", slow)
    order = stage.order("1")
    stage.write_file()
    async with node_on(stage.url) as node, working(stage) as stopping:
        await node.place(order)
        await node.until_it_runs(order)
        stopping.set()
        for _ in range(10):
            await asyncio.sleep(0)
        stops.set()

        assert (await node.outcome(order)).kind == "ended"


async def ended_with(stage: WorkerStage, said: bytes) -> Turn:
    """Return a turn that a worker ended with these bytes."""
    team = stage.write_team(max=[{"say": "Hello."}])
    async with opened(stage.url, team) as conversation, node_on(stage.url) as node:
        seen = Seen(conversation)
        rows = await node.database.do("SELECT join_cluster('worker', 'w', '', %s::text[], '')", [POOL])
        # It is never late.
        await node.database.do("UPDATE processes SET beat_at = 'infinity' WHERE id = %s", rows[0][0])
        await conversation.say("Hi.")
        while not await node.database.do("SELECT turn FROM next_order(%s, 1, false)", rows[0][0]):
            await asyncio.sleep(0.01)
        await node.database.do("SELECT end_order(%s, %s, '1', 'ended', %s)", rows[0][0], conversation.id, said)
        while not seen.ended():
            await asyncio.sleep(0.01)
        return await conversation.read(lambda store, one: store.turn(one, "1"))


async def test_an_end_that_cannot_be_read_is_how_the_turn_failed(stage: WorkerStage) -> None:
    turn = await ended_with(stage, b"nonsense")

    assert turn.failure is not None
    assert "same version" in turn.failure.hint
    assert "bug" not in turn.failure.message


@pytest.mark.parametrize(
    "line", [b"nonsense", zlib.compress(framed(b"nonsense")), zlib.compress(bytes(MOST_SEGMENT_BYTES + 1))]
)
async def test_a_line_that_cannot_be_read_does_not_cost_the_reply(stage: WorkerStage, line: bytes) -> None:
    log = TurnLog()
    log.add(Said(Finished("Hello.")))
    reply = Reply(text="Hello.", usage=Usage(), started=Started(), command=(), seconds=1)

    turn = await ended_with(stage, msgspec.msgpack.encode(Result(reply=reply, log=[*log.packed(), line])))

    assert turn.state == "done"
