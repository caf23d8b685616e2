"""Homes with and without a conversation; teams of scripted agents; the command line as a real process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example
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

    def run(*words: str, stdin: str = "", cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bullpen", *words],
            env=environment,
            cwd=cwd,
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


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a home without conversations, and return where their file would be."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir(tmp_path)
    time.tzset()
    yield tmp_path / "home" / "conversations.db"
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def database(empty_home: Path) -> Path:
    """Give a home with the example conversation, and return its file."""
    with SqliteStore(empty_home) as store:
        write_example(store)
    return empty_home
