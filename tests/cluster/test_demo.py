"""`make cluster`: a conversation on two nodes and two workers survives the death of a node, and nothing is left."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from tests.cluster.processes import ROOT
from tests.store.postgres.server import needs_postgres

pytestmark = [needs_postgres, pytest.mark.timeout(400)]


@contextmanager
def demo() -> Iterator["subprocess.Popen[str]"]:
    """Start it, and end it whatever happens: it then ends what it has started."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "cluster_demo.py"), "--fast"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


def family_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def until_gone(family: list[psutil.Process]) -> None:
    while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in family):
        time.sleep(0.01)


def test_the_demo_ends_well_and_leaves_nothing() -> None:
    with demo() as process:
        told, _ = process.communicate()

    assert process.returncode == 0, told
    assert "Killing node 1" in told
    assert re.search(r"sarah is heard again [\d.]+ s after the kill", told)
    assert "Stored, each once: kim, max, sarah, max." in told
    assert "max was started 2 times" in told
    assert "sarah was started once" in told
    (folder,) = set(re.findall(r"bullpen-cluster-\w+", told))
    commands = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert [command for command in commands if folder in command] == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_stopped_in_the_middle_leaves_nothing(how: signal.Signals) -> None:
    with demo() as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "The first batch is through." in line:
                break
        family = family_of(process)
        assert len(family) > 4

        process.send_signal(how)
        process.stdout.read()
        until_gone(family)
    assert process.returncode == (130 if how == signal.SIGTERM else -how)
