"""Whatever goes wrong in a worker, an order that it took has an end: nobody waits for ever."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from tests.cluster.processes import Processes
from tests.cluster.stage import POOL, Node, WorkerStage
from tests.cluster.test_remote_agent import Seen, opened
from tests.cluster.test_worker import node_on

from bullpen.agents.runner import Reply
from bullpen.cluster import worker as worker_module
from bullpen.cluster.file_desk import FileDesk
from bullpen.cluster.file_work import FileAnswer, FileWork, FindRoot
from bullpen.cluster.orders import Order, next_order
from bullpen.cluster.outcomes import Outcome, Result, end
from bullpen.cluster.turn_log import MOST_SEGMENT_BYTES, Said, TurnLog, framed
from bullpen.cluster.worker import Worker
from bullpen.cluster.worker_events import Watch, nobody_watches
from bullpen.cluster.worker_file_reader import read_worker_file
from bullpen.store.base import Turn
from bullpen.turn_events import Finished, Started, Usage

SOON_SECONDS = 20


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes, monkeypatch: pytest.MonkeyPatch) -> WorkerStage:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return WorkerStage(tmp_path, url, processes)


@asynccontextmanager
async def working(stage: WorkerStage, watch: Watch = nobody_watches) -> AsyncIterator[asyncio.Event]:
    """Let a worker work here, until the context is left; yield what stops it."""
    stopping = asyncio.Event()
    worker = Worker(url=stage.url, pools=(POOL,), file=read_worker_file(stage.file), watch=watch)
    running = asyncio.create_task(worker.run(stopping))
    try:
        yield stopping
    finally:
        stopping.set()
        await asyncio.wait([running], timeout=SOON_SECONDS)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def soon(node: Node, order: Order) -> Outcome:
    async with asyncio.timeout(SOON_SECONDS):
        return await node.outcome(order)


async def test_a_turn_ends_though_nobody_can_be_told_of_it(stage: WorkerStage) -> None:
    """The terminal of a worker is gone, or its log is started again."""

    def broken(_: object) -> None:
        raise BrokenPipeError

    order = stage.order("1")
    stage.write_file()
    async with node_on(stage.url) as node, working(stage, broken):
        await node.place(order)

        assert (await soon(node, order)).result.reply is not None


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

        answer = msgspec.msgpack.decode((await soon(node, errand)).result.answer, type=FileAnswer)

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

        failure = (await soon(node, order)).result.failure

        assert failure is not None
        assert "too large" in failure.message


async def test_what_was_taken_in_the_moment_of_stopping_runs(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*given: Any, **others: Any) -> Order | None:
        order = await next_order(*given, **others)
        if order is not None:
            await asyncio.sleep(1)
        return order

    monkeypatch.setattr(worker_module, "next_order", slow)
    order = stage.order("1")
    stage.write_file()
    async with node_on(stage.url) as node, working(stage) as stopping:
        await node.place(order)
        await node.until_it_runs(order)
        stopping.set()

        assert (await soon(node, order)).kind == "ended"


async def ended_with(stage: WorkerStage, said: bytes) -> Turn:
    """Return a turn that a worker ended with these bytes."""
    team = stage.write_team(max=[{"say": "Hello."}])
    async with opened(stage.url, team) as conversation, node_on(stage.url) as node:
        seen = Seen(conversation)
        rows = await node.database.do("SELECT join_cluster('worker', 'w', '', %s::text[], '')", [POOL])
        await conversation.say("Hi.")
        while not await node.database.do("SELECT turn FROM next_order(%s, 1, false)", rows[0][0]):
            await asyncio.sleep(0.05)
        await node.database.do("SELECT end_order(%s, %s, '1', 'ended', %s)", rows[0][0], conversation.id, said)
        async with asyncio.timeout(SOON_SECONDS):
            while not seen.ended():
                await asyncio.sleep(0.05)
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
