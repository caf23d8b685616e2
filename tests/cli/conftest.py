"""Teams of scripted agents, and the command line as a real process, in a home of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.testing.terminal import Terminal

Steps = list[dict[str, Any]]
PERSON = '[[member]]\nname = "kim"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """Nothing of the one who runs the tests: no conversations, no colours, no terminal."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR")}
    return {**kept, "HOME": str(home), "BULLPEN_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / "state")}


@pytest.fixture
def write_team(tmp_path: Path) -> Callable[..., Path]:
    """Write a team file with kim and agents that play scripts; what is no list of steps is what they say."""

    def write(head: str = "", /, **agents: str | Steps) -> Path:
        members = [head, PERSON]
        for name, script in agents.items():
            steps = [{"say": script}] if isinstance(script, str) else script
            program = [sys.executable, "-m", "bullpen.testing.agent", "--as", "text", "--script", json.dumps(steps)]
            members.append(f'[[member]]\nname = "{name}"\ncommand = {json.dumps(program)}\n')
        file = tmp_path / "team.toml"
        file.write_text("\n".join(members), encoding="utf-8")
        return file

    return write


@pytest.fixture
def bullpen(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command to its end."""

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bullpen", *words],
            env=environment,
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def start_bullpen(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start a command in a session of its own; what still runs at the end is killed."""
    started = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "bullpen", *words],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def at_terminal(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Terminal]:
    """Run a command at a terminal."""

    def start(*words: str, columns: int = 80, **more: str) -> Terminal:
        command = [sys.executable, "-m", "bullpen", *words]
        return Terminal(command, env={**environment, **more}, cwd=tmp_path, columns=columns)

    return start
