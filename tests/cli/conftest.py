"""Homes with and without a conversation; teams of scripted agents; the command line as a real process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TextIO, cast

import pytest
from tests import forked
from tests.web.certificates import certificates

from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example
from bullpen.testing.terminal import Terminal

__all__ = ["certificates"]

Steps = list[dict[str, Any]]
PERSON = '[[member]]\nname = "kim"\n'


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what bullpen notes about running conversations in the test's own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


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
def bullpen(
    tmp_path: Path, environment: dict[str, str], played: None
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command to its end, inside this process."""

    def run(*words: str, stdin: str = "", cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        with (
            pytest.MonkeyPatch.context() as patched,
            _stream(stdin) as given,
            _stream() as out,
            _stream() as errors,
        ):
            patched.setattr(sys, "argv", ["bullpen"])
            for name, stream in {"stdin": given, "stdout": out, "stderr": errors}.items():
                patched.setattr(sys, name, stream)
            for name in list(os.environ):
                patched.delenv(name)
            for name, value in environment.items():
                patched.setenv(name, value)
            patched.chdir(cwd)
            try:
                code: object = main(words)
            except SystemExit as error:
                code = error.code
            assert isinstance(code, int)
            return subprocess.CompletedProcess(words, code, _read(out), _read(errors))

    return run


@contextmanager
def _stream(text: str = "") -> Iterator[TextIO]:
    """Give a stream that is no terminal, with this text."""
    with TemporaryFile("w+", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        stream.write(text)
        stream.seek(0)
        yield cast(TextIO, stream)


def _read(stream: TextIO) -> str:
    stream.seek(0)
    return stream.read()


@pytest.fixture
def bullpen_process(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command to its end."""

    def run(*words: str, stdin: str = "", cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return forked.run(
            [sys.executable, "-m", "bullpen", *words],
            env=environment,
            cwd=cwd,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )

    return run


@pytest.fixture
def start_bullpen(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start a command in a session of its own; what still runs at the end is killed."""
    started = []

    def start(*words: str, program: Sequence[str] = ("-m", "bullpen")) -> "subprocess.Popen[bytes]":
        process = forked.start(
            [sys.executable, *program, *words],
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
        return Terminal(command, env={**environment, **more}, cwd=tmp_path, columns=columns, start=forked.start)

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
