"""A worker runs orders once, as its own file allows, whatever happens to it, to its line or to the database."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cluster.processes import Processes
from tests.cluster.stage import POOL, Node, WorkerStage, ended, place
from tests.cluster.test_orders import an_order, worker

from bullpen.cluster import outcomes, telling
from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.lines import Listeners
from bullpen.cluster.membership import Process, joined, reap_for_ever
from bullpen.cluster.orders import cancel, new_attempt, next_order
from bullpen.cluster.turn_log import Ran, Said, Wrote, unpacked
from bullpen.testing.postgres import PostgresServer
from bullpen.turn_events import Finished, TextDelta


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


@asynccontextmanager
async def node_on(url: str, listeners: Listeners | None = None, address: str | None = None) -> AsyncIterator[Node]:
    """Yield a node that reaps, and that takes lines if it has an address or listeners."""
    bell = Bell(url, outcomes.CHANNEL)
    hears = listeners or Listeners()
    async with Database(url) as database, hears.serving("127.0.0.1") as port:
        process = Process(kind="node", name="a", address=f"127.0.0.1:{port}" if address is None else address)
        async with joined(database, bell, process) as member:
            reaping = asyncio.create_task(reap_for_ever(database, member.id))
            try:
                yield Node(database, bell, member.id)
            finally:
                reaping.cancel()


def said(lines: list[Any]) -> str:
    return "".join(line.event.text for line in lines if isinstance(line, Said) and isinstance(line.event, TextDelta))


async def test_an_order_runs_and_its_lines_are_heard_while_it_does(stage: WorkerStage) -> None:
    listeners = Listeners()
    order = stage.order("1", [{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    async with node_on(stage.url, listeners) as node:
        hearing = await node.place(order)
        with listeners.hearing(order.key, hearing):
            stage.start_worker()
            while "Hello" not in said(node.lines):
                await asyncio.sleep(0.01)
            assert not await node.database.do("SELECT FROM outcomes")

            stage.go.touch()
            outcome = await node.outcome(order)
            await hearing.hear_rest(outcome.result.log)

        assert outcome.kind == "ended"
        assert outcome.result.reply is not None
        assert outcome.result.reply.text == "Hello you."
        assert node.lines == [line for _, line in unpacked(outcome.result.log)]
        assert isinstance(node.lines[0], Ran)
        assert any(isinstance(line, Wrote) for line in node.lines)
        assert node.lines[-1] == Said(Finished("Hello you."))


async def test_lines_go_through_the_database_where_no_connection_can_be_made(stage: WorkerStage) -> None:
    order = stage.order("1", [{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    async with node_on(stage.url, address="127.0.0.1:1") as node:
        await node.place(order)
        stage.start_worker()
        while not (rows := await node.database.do("SELECT number, line FROM lines ORDER BY number")):
            await asyncio.sleep(0.01)
        assert not await node.database.do("SELECT FROM outcomes")
        assert [number for number, _ in rows] == list(range(1, len(rows) + 1))

        stage.go.touch()
        outcome = await node.outcome(order)
        assert outcome.result.reply is not None


async def test_lines_that_the_database_has_lost_are_left_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else would bring a question: an agent that waits for the answer says nothing more."""
    monkeypatch.setattr(telling, "DATABASE_SECONDS", 0.1)
    query = "SELECT number FROM lines ORDER BY number"
    unreachable = Process(kind="node", name="a", address="127.0.0.1:1")
    async with Database(url) as database, joined(database, Bell(url), unreachable) as node:
        await place(database, an_order(), node.id)
        one = await worker(database, POOL)
        order = await next_order(database, one, new_attempt())
        assert order is not None
        lines = telling.Telling(database, one, order.key)
        for part in ("Hello ", "you."):
            lines.add(Said(TextDelta(part)))
        leaving = asyncio.create_task(lines.tell())
        while await database.do(query) != [(1,), (2,)]:
            await asyncio.sleep(0.01)

        # As a crash of the server does with such tables.
        await database.do("TRUNCATE lines")

        while await database.do(query) != [(1,), (2,)]:
            await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)


class Connected(Listeners):
    """Counts the connections of workers that have ended."""

    ended = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await super()._serve(reader, writer)
        finally:
            self.ended += 1


async def test_a_line_that_breaks_is_continued_where_it_broke(stage: WorkerStage) -> None:
    listeners = Connected()
    last = {"wait_for": str(stage.go.with_name("last"))}
    order = stage.order("1", [{"say": "one "}, stage.waits, {"say": "two "}, last, {"say": "three"}])
    stage.write_file()
    async with node_on(stage.url, listeners) as node:
        hearing = await node.place(order)
        with listeners.hearing(order.key, hearing):
            stage.start_worker()
            while said(node.lines) != "one ":
                await asyncio.sleep(0.01)
        # It is not wanted for a moment, so the worker is hung up on when it says more.
        before = listeners.ended
        stage.go.touch()
        while listeners.ended == before:
            await asyncio.sleep(0.01)
        assert said(node.lines) == "one "
        with listeners.hearing(order.key, hearing):
            while said(node.lines) != "one two ":
                await asyncio.sleep(0.01)
            stage.go.with_name("last").touch()
            outcome = await node.outcome(order)
            await hearing.hear_rest(outcome.result.log)

        assert said(node.lines) == "one two three"


async def test_a_stranger_cannot_speak_for_an_agent(stage: WorkerStage) -> None:
    from bullpen.cluster.lines import Hello, line_to

    listeners = Listeners()
    order = stage.order("1")
    async with node_on(stage.url, listeners) as node:
        rows = await node.database.do("SELECT address FROM processes")
        hearing = await node.place(order)
        with listeners.hearing(order.key, hearing):
            with pytest.raises(EOFError):
                async with line_to(rows[0][0], Hello(*order.key, "a guess")):
                    pass
            async with line_to(rows[0][0], Hello(*order.key, hearing.token)) as line:
                assert line.has == 0


async def test_a_worker_that_is_killed_loses_its_turn_and_nobody_runs_it_again(stage: WorkerStage) -> None:
    order, later = stage.order("1", [{"child": 600}, {"say": "Hi."}, {"hang": True}]), stage.order("2")
    stage.write_file()
    async with node_on(stage.url) as node:
        worker = stage.start_worker()
        await node.place(order)
        while not stage.started():
            await asyncio.sleep(0.01)
        family = psutil.Process(worker.pid).children(recursive=True)
        assert family

        worker.kill()
        outcome = await node.outcome(order)

        assert outcome.kind == "lost"
        stage.start_worker()
        await node.place(later)
        assert (await node.outcome(later)).kind == "ended"
        assert stage.started() == ["1", "2"]
        await asyncio.to_thread(psutil.wait_procs, family, 30)
        assert not [process for process in family if process.is_running() and process.status() != "zombie"]


async def test_a_frozen_worker_loses_its_turn_and_its_late_word_is_refused(stage: WorkerStage) -> None:
    """This one is given up by the clock of the database alone, without a test that moves it."""
    order, later = stage.order("1", [stage.waits, {"say": "Late."}]), stage.order("2")
    stage.write_file()
    async with node_on(stage.url) as node:
        worker = stage.start_worker()
        await node.place(order)
        agent = await stage.agent_of(worker)

        worker.freeze()
        stage.go.touch()
        await ended(agent)
        assert (await node.outcome(order)).kind == "lost"
        worker.wake()

        await node.place(later)
        assert (await node.outcome(later)).kind == "ended"
        assert (await node.outcome(order)).kind == "lost"
        assert stage.started() == ["1", "2"]


async def test_cancelling_ends_the_whole_family_of_the_agent(stage: WorkerStage) -> None:
    order = stage.order("1", [{"ignore": ["SIGINT", "SIGTERM"]}, {"orphan": 600}, {"child": 600}, {"hang": True}])
    stage.write_file()
    async with node_on(stage.url) as node:
        worker = stage.start_worker()
        await node.place(order)
        while not stage.started() or len(psutil.Process(worker.pid).children(recursive=True)) < 4:
            await asyncio.sleep(0.01)
        family = [one for one in psutil.Process(worker.pid).children(recursive=True) if "agent" in str(one.cmdline())]
        assert family

        assert await cancel(node.database, node.owner, *order.key)
        outcome = await node.outcome(order)

        assert outcome.kind == "cancelled"
        assert not [process for process in family if process.is_running() and process.status() != "zombie"]


async def test_a_turn_continues_while_the_database_is_away(
    tmp_path: Path, own_server: PostgresServer, processes: Processes
) -> None:
    stage = WorkerStage(tmp_path, own_server.url(), processes)
    order = stage.order("1", [{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    async with node_on(stage.url) as node:
        worker = stage.start_worker()
        await node.place(order)
        agent = await stage.agent_of(worker)

        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        stage.go.touch()
        await ended(agent)
        await asyncio.to_thread(own_server.start)
        outcome = await node.outcome(order)

        assert outcome.result.reply is not None
        assert outcome.result.reply.text == "Hello you."
        assert stage.started() == ["1"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cwd": "/etc"}, "'/etc' is not in one of its folders"),
    ({"cwd": "project/../.."}, "is not in one of its folders"),
    ({"permissions": "full"}, '"full" is more than its "edit"'),
    ({"permissions": "ask"}, '"ask" is more than its "edit"'),
    ({"arguments": ("--yolo",)}, "arguments does not hold '--yolo'"),
    ({"allow": ("rm",)}, "allow does not hold 'rm'"),
    ({"env": ("AWS_SECRET",)}, "env does not hold 'AWS_SECRET'"),
    ({"command": ("/bin/sh", "-c", "id")}, "is not among its commands"),
    ({"command": (), "agent": "claude"}, "the agent 'claude' is not among its agents"),
]


async def test_the_workers_own_file_decides_what_may_run_there(stage: WorkerStage) -> None:
    orders = [stage.order(str(number), **asks) for number, (asks, _) in enumerate(REFUSED)]
    fine = stage.order("fine", cwd="project", env=("HOST_KEY",), permissions="edit")
    stage.write_file(permissions="edit", env=["HOST_*"])
    async with node_on(stage.url) as node:
        stage.start_worker()
        for order in (*orders, fine):
            await node.place(order)

        for order, (asks, because) in zip(orders, REFUSED, strict=True):
            failure = (await node.outcome(order)).result.failure
            assert failure is not None, asks
            assert failure.kind == "permission_refused"
            assert because in failure.message
            assert "box" in failure.message
        assert (await node.outcome(fine)).result.reply is not None
        assert stage.started() == ["fine"]
