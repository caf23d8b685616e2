"""A conversation on one machine, from its first word to its end, loads nothing of what is for many machines."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, sys
modules = sys.argv.pop(1)
atexit.register(lambda: open(modules, "w").write("\\n".join(sys.modules)))
from bullpen.cli import main
sys.exit(main())
"""
OF_MANY_MACHINES = ("bullpen.cluster", "bullpen.store.postgres", "psycopg", "psycopg_pool", "procrastinate")


class Embedded:
    """A machine without a cluster, and a team that answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules = folder / "modules"
        agent = [sys.executable, "-m", "bullpen.testing.agent", "--as", "text", "--script", '[{"say": "Hello."}]']
        words = ", ".join(f"'{word}'" for word in agent)
        team = f'name = "t"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = [{words}]\n'
        (folder / "team.toml").write_text(team)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        home = {"BULLPEN_HOME": str(self._folder / "home"), "XDG_STATE_HOME": str(self._folder / "state")}
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self._modules), *words],
            env=os.environ | home,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def of_many_machines(self) -> list[str]:
        """Return what was loaded that should not have been."""
        loaded = self._modules.read_text().split()
        assert "bullpen.app" in loaded
        return [name for name in loaded if name.startswith(OF_MANY_MACHINES)]


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    return Embedded(tmp_path)


@pytest.mark.parametrize("words", [("run", "--trust", "team.toml", "Hi."), ("chat", "--plain", "--trust", "team.toml")])
def test_a_conversation_in_a_terminal_needs_nothing_of_many_machines(
    embedded: Embedded, words: tuple[str, ...]
) -> None:
    shown, _ = embedded.start(*words).communicate("Hi.\n/quit\n", timeout=120)

    assert "Hello." in shown
    assert embedded.of_many_machines() == []


def test_serving_without_a_cluster_needs_nothing_of_many_machines(embedded: Embedded) -> None:
    process = embedded.start("serve", "--no-open", "--trust", "team.toml")
    assert process.stdout is not None
    while "http" not in (line := process.stdout.readline()):
        assert line, "it ended"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert embedded.of_many_machines() == []
