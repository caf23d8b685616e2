"""`make cluster`: a conversation on two nodes and two workers survives the death of a node, and nothing is left."""

import re
import subprocess
import sys

import psutil
from tests.cluster.processes import ROOT
from tests.store.postgres.server import needs_postgres


@needs_postgres
def test_the_demo_ends_well_and_leaves_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "cluster_demo.py"), "--fast"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Killing node 1" in ended.stdout
    assert re.search(r"sarah is heard again [\d.]+ s after the kill", ended.stdout)
    assert "Stored, each once: kim, max, sarah, max." in ended.stdout
    assert "max was started 2 times" in ended.stdout
    assert "sarah was started once" in ended.stdout
    (folder,) = set(re.findall(r"bullpen-cluster-\w+", ended.stdout))
    commands = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert [command for command in commands if folder in command] == []
