"""Editors that talk with a team of scripted agents."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import forked
from tests.cli.editor.client import Editor

Script = list[dict[str, Any]]


@pytest.fixture
def editor(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., Editor]]:
    """Start `bullpen acp` in the test's folder; what still runs at the end is killed."""
    started: list[Editor] = []

    def start(*words: str) -> Editor:
        command = [sys.executable, "-m", "bullpen", "acp", *(words or ("team.toml", "--trust"))]
        pipe = subprocess.PIPE
        with (tmp_path / "stderr").open("ab") as errors:
            process = forked.start(command, env=environment, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=errors)
        started.append(Editor(process))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture
def playing(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Path]:
    """Write a team with kim and max, who plays one script as Claude Code, and asks before it does something."""

    def write(*script: dict[str, Any], more: str = "", cli: str = "claude", may: str = "ask") -> Path:
        program = tmp_path / "bin" / cli
        program.parent.mkdir(exist_ok=True)
        (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
        program.write_text(
            f"#!/bin/sh\nexec {sys.executable} -m bullpen.testing.agent --as {cli} "
            f'--script {tmp_path / "script.json"} "$@"\n',
            encoding="utf-8",
        )
        program.chmod(0o755)
        environment["PATH"] = f"{program.parent}:{environment['PATH']}"
        team = tmp_path / "team.toml"
        runs = f'agent = "{cli}"\npermissions = "{may}"\n'
        members = f'[[member]]\nname = "kim"\n[[member]]\nname = "max"\n{runs}'
        team.write_text(f'name = "shop"\n{members}{more}', encoding="utf-8")
        return team

    return write
