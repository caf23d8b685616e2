"""`bullpen doctor --cluster`: who is there, what they announced, and which replica must not be failed over to."""

import asyncio
import json
import re
import time
from pathlib import Path

import psycopg
import pytest
from tests.cluster.databases import database
from tests.cluster.processes import Processes
from tests.cluster.replica import replica_of
from tests.cluster.stage import Node, WorkerStage

from bullpen.cli import main
from bullpen.cluster import outcomes
from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.membership import Process, joined
from bullpen.cluster.survey import survey
from bullpen.testing.postgres import PASSWORD, PostgresServer


async def test_it_lists_nodes_workers_and_what_they_announced(
    tmp_path: Path, url: str, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = WorkerStage(tmp_path, url, processes)
    order = stage.order("1")
    stage.write_file(agents=["claude"])
    node_process = Process(kind="node", name="a", address="127.0.0.1:7")
    async with Database(url) as database_, joined(database_, Bell(url), node_process):
        node = Node(database_, Bell(url, outcomes.CHANNEL))
        started = processes.start("bullpen", "worker", "--pool", "gpu-box", str(stage.file), "--cluster", url)
        while "Joined" not in await asyncio.to_thread(started.line):
            pass
        await node.place(order)
        await node.outcome(order)

        code = main(["doctor", "--cluster", url])
        said = capsys.readouterr().out

        assert re.search(r"node +a +[\d.]+ s ago +127\.0\.0\.1:7", said)
        assert re.search(r"worker +box +[\d.]+ s ago +gpu-box", said)
        assert "box: claude" in said
        assert "box: folders project." in said
        assert "The server has no replica" in said
        assert PASSWORD not in said
        assert code == 0


async def test_a_pool_without_a_worker_whose_turns_wait_is_wrong(
    tmp_path: Path, url: str, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = WorkerStage(tmp_path, url, processes)
    async with Database(url) as database_:
        await Node(database_, Bell(url)).place(stage.order("1"))

    assert main(["doctor", "--cluster", url]) == 1
    assert "Nobody serves the pool 'gpu-box', and 1 of its turns wait." in capsys.readouterr().out
    assert main(["doctor", "--cluster", url, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["waiting"] == {"gpu-box": 1}


@pytest.mark.usefixtures("template")
def test_a_server_without_a_cluster_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with database() as empty:
        assert main(["doctor", "--cluster", empty]) == 1
    assert "is not the server of a cluster yet" in capsys.readouterr().err


def test_an_asynchronous_replica_is_refused_as_a_target_of_failover(own_server: PostgresServer) -> None:
    with replica_of(own_server, "standby") as replica:
        (said,) = survey(own_server.url()).problems
        assert said.startswith("The replica standby is asynchronous, so do not fail over to it:")
        assert survey(replica).problems[0].startswith("This server is a replica")

        with psycopg.connect(own_server.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            connection.execute("SELECT pg_reload_conf()")
            while connection.execute("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone() is None:
                time.sleep(0.01)

        assert survey(own_server.url()).problems == ()
        assert survey(own_server.url()).replicas == {"standby": "sync"}
        with psycopg.connect(own_server.url(), autocommit=True) as connection:
            connection.execute("ALTER ROLE kai SET synchronous_commit = 'local'")
        assert "no replica is waited for" in survey(own_server.url()).problems[0]


async def test_processes_with_one_name_are_told_apart_and_two_such_workers_are_wrong(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    node = Process(kind="node", name="a", address="127.0.0.1:7")
    worker = Process(kind="worker", name="box", pools=("gpu-box",))
    async with (
        Database(url) as database_,
        joined(database_, Bell(url), node) as first,
        joined(database_, Bell(url), node) as second,
        joined(database_, Bell(url), worker) as third,
        joined(database_, Bell(url), worker),
        joined(database_, Bell(url), Process(kind="worker", name="other", pools=("gpu-box",))),
    ):
        code = main(["doctor", "--cluster", url])
    said = capsys.readouterr().out

    assert code == 1
    for name in (f"a ({first.id})", f"a ({second.id})", f"box ({third.id})", "other "):
        assert re.search(rf"(node|worker) +{re.escape(name)}", said)
    assert "2 workers of the pool 'gpu-box' are called box, so" in said
    assert "Give each a name of its own in its file." in said
