"""The files in deploy/ for a cluster: what can be known of them without a systemd or a docker that runs."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from proofs.deploy.test_deploy import DEPLOY, MOST_EXPOSED
from tests.cluster.conftest import processes, template, url
from tests.cluster.processes import Processes
from tests.cluster.stage import WorkerStage

__all__ = ["processes", "template", "url"]

NODE, WORKER = "bullpen-node@.service", "bullpen-worker@.service"


def settings(unit: str) -> dict[str, str]:
    lines = (DEPLOY / unit).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", maxsplit=1) for line in lines if "=" in line and not line.startswith("#"))


def services() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "cluster.compose.yaml").read_text(encoding="utf-8"))["services"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", [NODE, WORKER])
def test_systemd_takes_the_units_and_finds_them_protected(name: str, tmp_path: Path) -> None:
    unit = tmp_path / name.replace("@", "@kai")
    text = (DEPLOY / name).read_text(encoding="utf-8")
    # It looks whether the program is there.
    unit.write_text(text.replace("ExecStart=/home/%i/.local/bin/bullpen", "ExecStart=/bin/true"), encoding="utf-8")
    analyze = ["systemd-analyze", "--no-pager"]

    verified = subprocess.run(
        [*analyze, "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    looked = [*analyze, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(unit)]
    secured = subprocess.run(looked, capture_output=True, text=True, check=False)

    assert (verified.returncode, verified.stderr) == (0, "")
    assert secured.returncode == 0, secured.stdout


def test_a_worker_leaves_nothing_and_no_unit_holds_a_password() -> None:
    assert settings(WORKER)["KillMode"] == "control-group"
    for name in (NODE, WORKER):
        assert "--trust" not in settings(name)["ExecStart"]
        assert "--cluster" not in settings(name)["ExecStart"]
        assert settings(name)["EnvironmentFile"].startswith("/etc/bullpen/")


ENDS_SLOWLY = """
import pathlib, signal, sys, time
def end(*_):
    time.sleep(0.3)
    pathlib.Path(sys.argv[1]).touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_stopping_a_worker_waits_for_its_end(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    # As systemd passes it on.
    words = [word.replace("$$", "$") for word in shlex.split(settings(WORKER)["ExecStop"])]
    with subprocess.Popen([sys.executable, "-c", ENDS_SLOWLY, ended], stdout=subprocess.PIPE) as main_process:
        assert main_process.stdout is not None
        main_process.stdout.readline()
        stop_and_look = ["sh", "-c", 'ended="$1"; shift; "$@" && test -e "$ended"', "sh", str(ended), *words]
        stop = subprocess.Popen(stop_and_look, env={**os.environ, "MAINPID": str(main_process.pid)})
        assert main_process.wait() == 0
        assert stop.wait() == 0, "it was over before the worker had ended"
    assert subprocess.run(words, env={**os.environ, "MAINPID": ""}, check=False).returncode == 0


def test_the_workers_commands_join_and_end_when_they_are_told_to(
    tmp_path: Path, url: str, processes: Processes
) -> None:
    stage = WorkerStage(tmp_path, url, processes)
    stage.order("1")
    stage.write_file()
    _, *in_unit = shlex.split(settings(WORKER)["ExecStart"].replace("${POOL}", "gpu-box"))
    for words in (in_unit, services()["worker"]["command"]):
        given = [str(stage.file) if word == "worker.toml" else word for word in words]
        started = processes.start("bullpen", *given, BULLPEN_CLUSTER=url)
        while "Joined" not in (line := started.line()):
            assert line
        assert started.stop() == 0


def test_the_nodes_commands_serve_without_asking_for_trust(tmp_path: Path, url: str, processes: Processes) -> None:
    """Nothing of a team whose agents are all in pools runs on a node."""
    stage = WorkerStage(tmp_path, url, processes)
    team = stage.write_team(max=[{"say": "Hello."}])
    in_unit = settings(NODE)["ExecStart"].replace("${NODE_HOST}", "127.0.0.1").replace("/run/bullpen-node-%i", "TOKENS")
    _, *words_in_unit = shlex.split(in_unit)
    for words in (words_in_unit, services()["node-1"]["command"], services()["node-2"]["command"]):
        given = ["0" if word.startswith("84") else word for word in words]
        given = [str(tmp_path / "token") if word.endswith("/token") else word for word in given]
        started = processes.start("bullpen", *given, str(team), BULLPEN_CLUSTER=url)
        while "/enter/" not in (line := started.line()):
            assert line
        assert started.stop() == 0


def test_the_containers_are_made_of_files_that_are_there_and_may_do_little() -> None:
    found = services()

    assert set(found) == {"postgres", "node-1", "node-2", "worker"}
    for name in ("node-1", "node-2", "worker"):
        service = found[name]
        assert (DEPLOY / service["build"]["context"]).resolve() == DEPLOY.parent
        assert (DEPLOY.parent / service["build"]["dockerfile"]).exists()
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"]
        assert "--trust" not in service["command"]
        assert service["environment"]["BULLPEN_CLUSTER"].startswith("postgresql://")
        assert ":?" in service["environment"]["PGPASSWORD"]
    assert found["worker"]["environment"]["PGPASSWORD"] != found["node-1"]["environment"]["PGPASSWORD"]
    assert found["postgres"]["ports"] == ["127.0.0.1:5432:5432"]
    assert "cluster" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
