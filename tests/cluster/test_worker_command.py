"""`bullpen worker`: what it says, how it is stopped, and what it refuses, as a real process."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from tests.cluster.databases import database
from tests.cluster.processes import Processes, Started
from tests.cluster.refusing import refused
from tests.cluster.stage import POOL, Node, WorkerStage

from bullpen.cli import main
from bullpen.cli.signals import AGAIN_SECONDS
from bullpen.cluster import outcomes
from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.schema import prepare
from bullpen.testing.postgres import PASSWORD, PostgresServer


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


def worker(stage: WorkerStage, processes: Processes, url: str = "") -> Started:
    return processes.start("bullpen", "worker", "--pool", POOL, str(stage.file), BULLPEN_CLUSTER=url or stage.url)


def until(started: Started, part: str) -> list[str]:
    """Return the lines that it prints, up to one with these words."""
    lines = [started.line()]
    while part not in lines[-1]:
        assert lines[-1], f"it ended without {part!r}: {lines}"
        lines.append(started.line())
    return lines


def refused_worker(*words: str, **environment: str) -> str:
    """Return what a worker says that does not start."""
    return refused("worker", *words, exit_codes=(1, 2), **environment)


async def test_it_says_what_it_lets_others_run_and_what_it_runs(stage: WorkerStage, processes: Processes) -> None:
    order = stage.order("1")
    stage.write_file(permissions="edit", env=["HOST_*"])
    async with Database(stage.url) as database_:
        node = Node(database_, Bell(stage.url, outcomes.CHANNEL))
        started = worker(stage, processes)
        said = "\n".join(until(started, "Joined"))
        await node.place(order)
        said += "\n".join(until(started, "replied"))

    assert "The worker box serves gpu-box on postgresql://" in said
    assert f"folders: project ({stage.folder})" in said
    assert 'at most: permissions "edit", 4 turns at once' in said
    assert "variables: HOST_*" in said
    assert "max begins in calm-oak (gpu-box)." in said
    assert re.search(r"max in calm-oak replied after [\d.]+ s\.", said)
    assert PASSWORD not in said
    assert started.stop() == 0


async def test_the_first_ctrl_c_waits_for_what_runs_and_nothing_else_is_taken(
    stage: WorkerStage, processes: Processes
) -> None:
    order, later = stage.order("1", [stage.waits, {"say": "Done."}]), stage.order("2")
    stage.write_file(at_once=1)
    async with Database(stage.url) as database_:
        node = Node(database_, Bell(stage.url, outcomes.CHANNEL))
        started = worker(stage, processes)
        until(started, "Joined")
        await node.place(order)
        until(started, "begins")

        os.kill(started.pid, signal.SIGINT)
        (told,) = until(started, "Begins no more turns")
        await node.place(later)
        stage.go.touch()
        said = until(started, "Left")

        assert "Begins no more turns. Waits for 1 turn; Ctrl-C again ends that." in told
        assert "replied" in said[0]
        rows = await database_.do("SELECT turn, kind FROM outcomes")
        assert rows == [("1", "ended")]
    assert started.wait() == 0
    assert stage.started() == ["1"]


async def test_the_second_ctrl_c_ends_what_runs(stage: WorkerStage, processes: Processes) -> None:
    order = stage.order("1", [{"hang": True}])
    stage.write_file()
    async with Database(stage.url) as database_:
        node = Node(database_, Bell(stage.url, outcomes.CHANNEL))
        started = worker(stage, processes)
        until(started, "Joined")
        await node.place(order)
        until(started, "begins")

        os.kill(started.pid, signal.SIGINT)
        until(started, "Begins no more turns")
        # What comes sooner is the same one.
        await asyncio.sleep(AGAIN_SECONDS)
        os.kill(started.pid, signal.SIGINT)
        said = until(started, "Left")

        assert "was ended after" in said[-2]
        assert await database_.do("SELECT kind FROM outcomes") == [("lost",)]
    assert started.wait() == 130


def test_it_waits_for_the_first_node_to_make_the_tables(stage: WorkerStage, processes: Processes) -> None:
    stage.order("1")
    stage.write_file()
    with database() as empty:
        started = worker(stage, processes, empty)
        said = until(started, "Trying again")
        prepare(empty)
        until(started, "Joined")
        assert started.stop() == 0

    assert "has no tables of a cluster yet. The first node makes them: bullpen serve --cluster." in said[-1]


def test_it_waits_for_a_server_that_is_away(
    stage: WorkerStage, processes: Processes, own_server: PostgresServer
) -> None:
    stage.order("1")
    stage.write_file()
    own_server.stop()
    started = worker(stage, processes, own_server.url())
    said = until(started, "Trying again")
    own_server.start()
    until(started, "Joined")
    own_server.stop()
    until(started, "The server is away. What runs continues")
    own_server.start()
    until(started, "The server is back.")

    assert "cannot be reached" in said[-1]
    assert PASSWORD not in "".join(said)
    assert started.stop() == 0


def test_a_worker_that_waits_leaves_at_the_first_ctrl_c(stage: WorkerStage, processes: Processes) -> None:
    stage.order("1")
    stage.write_file()
    started = worker(stage, processes, "postgresql://kai@127.0.0.1:1/nothing")
    until(started, "Trying again")

    os.kill(started.pid, signal.SIGINT)

    assert started.wait() == 130


async def test_one_with_the_name_of_another_waits_until_that_is_gone(stage: WorkerStage, processes: Processes) -> None:
    stage.order("1")
    stage.write_file()
    first = worker(stage, processes)
    until(first, "Joined")
    second = worker(stage, processes)
    said = until(second, "Trying again")
    assert "Another worker is called box, too, and serves gpu-box, so what belongs to its files" in said[-1]
    assert not any("Joined" in line for line in said)

    # A dead one is not waited for, also if it seems to have spoken just now.
    first.kill()
    async with beats_of_the_dead(stage.url, "box"):
        await asyncio.to_thread(until, second, "Joined")

    elsewhere = processes.start("bullpen", "worker", "--pool", "other", str(stage.file), BULLPEN_CLUSTER=stage.url)
    until(elsewhere, "Joined")
    third = worker(stage, processes)
    until(third, "Trying again")
    os.kill(third.pid, signal.SIGINT)
    assert third.wait() == 130


@asynccontextmanager
async def beats_of_the_dead(url: str, name: str) -> AsyncIterator[None]:
    """Let the process that has a name say that it lives, all the time."""

    async def beat() -> None:
        async with Database(url) as database_:
            rows = await database_.do("SELECT id FROM processes WHERE name = %s", name)
            while True:
                await database_.do("SELECT beat(%s)", rows[0][0])
                await asyncio.sleep(0.01)

    beating = asyncio.create_task(beat())
    yield
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


def test_a_role_that_may_not_is_refused_with_what_to_do(stage: WorkerStage, role: str) -> None:
    stage.order("1")
    stage.write_file()
    address = re.sub("//[^@]*@", f"//{role}@", stage.url)
    words = ("--pool", POOL, str(stage.file), "--cluster", address)

    no_pool = refused_worker(*words, PGPASSWORD="x")
    with psycopg.connect(stage.url) as connection:
        connection.execute("SELECT bullpen_cluster.let_serve(%s, 'other')", [role])
    other_pool = refused_worker(*words, PGPASSWORD="x")

    assert f"The role {role} may not serve any pool." in no_pool
    assert f"SELECT bullpen_cluster.let_serve('{role}', 'POOL')" in no_pool
    assert f"The role {role} may not serve the pool gpu-box." in other_pool
    assert f"SELECT bullpen_cluster.let_serve('{role}', 'gpu-box')" in other_pool


def test_a_wrong_password_ends_it_with_a_sentence_that_does_not_show_it(stage: WorkerStage, role: str) -> None:
    stage.order("1")
    stage.write_file()
    address = re.sub("//[^@]*@", f"//{role}:wrong-password@", stage.url)

    said = refused_worker("--pool", POOL, str(stage.file), "--cluster", address)

    assert "refused the connection: password authentication failed" in said
    assert "wrong-password" not in said


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("--pool", POOL, "worker.toml"), "Which cluster? Add --cluster"),
        (("--pool", POOL, "worker.toml", "--cluster", "mysql://a:secret@b"), "must begin with postgresql://"),
        (("--pool", "GPU box", "worker.toml", "--cluster", "postgresql://b/c"), "must be the name of a pool"),
        (("worker.toml", "--cluster", "postgresql://b/c"), "--pool"),
        (("--pool", POOL, "no.toml", "--cluster", "postgresql://b/c"), "There is no such file"),
    ],
)
def test_wrong_words_are_said_to_be_wrong(
    words: tuple[str, ...], because: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BULLPEN_CLUSTER", "")
    try:
        code: object = main(["worker", *words])
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err

    assert code in (1, 2)
    assert because in said
    assert "secret" not in said
