"""Nodes and workers that cannot be part of a cluster say so in one sentence, with what to do, and end."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.cluster.databases import database
from tests.cluster.processes import Processes
from tests.cluster.refusing import refused
from tests.cluster.replica import replica_of
from tests.cluster.stage import POOL, WorkerStage

from bullpen.cluster import schema
from bullpen.cluster.database import Database
from bullpen.errors import StoreBusy, how_to_install
from bullpen.testing.postgres import PASSWORD, PostgresServer


@pytest.fixture
def commands(tmp_path: Path, processes: Processes) -> dict[str, list[str]]:
    """What starts a node, and what starts a worker."""
    stage = WorkerStage(tmp_path, "", processes)
    stage.order("1")
    stage.write_file()
    return {"node": ["serve", "--no-open"], "worker": ["worker", str(stage.file), "--pool", POOL]}


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers, as where packets are dropped."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"postgresql://kai:secret@127.0.0.1:{listener.getsockname()[1]}/bullpen"


def both(commands: dict[str, list[str]], url: str, path: str = "") -> list[str]:
    """Return what a node and a worker say, each in one line."""
    said = [refused(*words, "--cluster", url, PYTHONPATH=path) for words in commands.values()]
    assert all(PASSWORD not in one and one.count("\n") == 1 for one in said), said
    return said


def test_a_node_whose_server_is_not_there_ends(commands: dict[str, list[str]]) -> None:
    said = refused(*commands["node"], "--cluster", "postgresql://kai:secret@127.0.0.1:1/bullpen")

    assert "postgresql://kai@127.0.0.1:1/bullpen cannot be reached" in said
    assert "Is the server running?" in said
    assert "secret" not in said


def test_a_node_whose_server_does_not_answer_ends_and_a_worker_tries_again(
    commands: dict[str, list[str]], silent: str, processes: Processes
) -> None:
    """Both wait for the answer at the same time."""
    started = processes.start("bullpen", *commands["worker"], "--cluster", silent)
    said = refused(*commands["node"], "--cluster", silent)
    assert "cannot be reached: connection timeout expired. Is the server running?" in said
    said = started.line()
    while "Trying again" not in said:
        said = started.line()

    assert "cannot be reached: connection timeout expired. Is the server running? Trying again." in said
    assert started.stop() == 143


def test_a_role_of_workers_cannot_be_a_node(commands: dict[str, list[str]], url: str, role: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT bullpen_cluster.let_serve(%s, %s)", [role, POOL])
    address = re.sub("//[^@]*@", f"//{role}@", url)

    said = refused(*commands["node"], "--cluster", address, PGPASSWORD="x")

    assert f"The role {role} may not be a node on postgresql://{role}@" in said
    assert "Use the role that owns the database" in said


def test_a_role_without_rights_cannot_make_the_tables(commands: dict[str, list[str]], role: str) -> None:
    with database() as empty:
        address = re.sub("//[^@]*@", f"//{role}@", empty)
        said = refused(*commands["node"], "--cluster", address, PGPASSWORD="x")

    assert f"The role {role} may not be a node on" in said


def test_tables_of_a_newer_bullpen_are_left_alone(commands: dict[str, list[str]], url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE bullpen_cluster.version SET number = 99")

    for said in both(commands, url):
        assert re.search(
            r"The schema bullpen_cluster in postgresql://\S+ has format 99, but this bullpen only reads up to \d+. "
            "Update bullpen.",
            said,
        )


def test_a_worker_waits_until_older_tables_are_brought_up_to_date(
    commands: dict[str, list[str]], url: str, processes: Processes
) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE bullpen_cluster.version SET number = 0")
    started = processes.start("bullpen", *commands["worker"], "--cluster", url)
    said = started.line()
    while "Trying again" not in said:
        said = started.line()

    assert "has tables of an older bullpen. The first node that is updated brings them up to date." in said


def test_a_replica_is_refused(commands: dict[str, list[str]], own_server: PostgresServer) -> None:
    with replica_of(own_server, "standby") as replica:
        for said in both(commands, replica):
            assert "is a replica, which cannot be written to. Use the address of the primary." in said


def test_a_database_that_is_read_only_is_refused(commands: dict[str, list[str]], url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on".encode())

    for said in both(commands, url):
        assert "is read-only: default_transaction_read_only is on" in said
        assert "Turn it off, or use another database." in said


@pytest.mark.parametrize("module", ["psycopg", "psycopg_pool", "procrastinate"])
def test_without_the_extra_it_is_named(module: str, commands: dict[str, list[str]], tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.mkdir()
    (missing / f"{module}.py").write_text(f"raise ModuleNotFoundError('No module named {module}', name={module!r})\n")
    path = os.pathsep.join([str(missing), os.environ.get("PYTHONPATH", "")])

    for said in both(commands, "postgresql://kai@127.0.0.1:1/bullpen", path):
        assert said == (f"bullpen: This needs {module}, which is not installed. Try: {how_to_install('cluster')}\n")


def test_a_node_does_not_wait_for_one_that_makes_the_tables_if_there_is_nothing_to_make(url: str) -> None:
    """That one may be frozen."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(1651864945)")

        schema.prepare(url)


def test_a_node_waits_a_while_for_one_that_makes_the_tables(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_LOCK_SECONDS", 1)
    scripts = schema._scripts()
    monkeypatch.setattr(schema, "_scripts", lambda: [*scripts, "SELECT 1"])
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(1651864945)")

        with pytest.raises(StoreBusy, match="is locked by another process"):
            schema.prepare(url)


async def test_the_server_ends_a_transaction_in_which_a_process_is_frozen(url: str) -> None:
    async with Database(url) as connected:
        assert await connected.do("SHOW idle_in_transaction_session_timeout") == [("10s",)]
