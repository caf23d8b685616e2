"""A stage: a team of scripted agents, so that a conversation costs nothing and is always the same."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

Script = Sequence[Mapping[str, object]]
"""The steps of one turn: see bullpen.testing.agent."""
AGENT = (sys.executable, "-m", "bullpen.testing.agent")
"""The command of a scripted agent."""


def write_team(folder: Path, agents: Mapping[str, Script], *, people: Sequence[str] = ("kim",), head: str = "") -> Path:
    """Write a team file whose agents each run one script in every turn; return its path."""
    parts = [head or 'name = "stage"\n']
    parts += [f"[[member]]\nname = {json.dumps(person)}\n" for person in people]
    for name, script in agents.items():
        command = [*AGENT, "--as", "text", "--script", json.dumps(script)]
        parts.append(f"[[member]]\nname = {json.dumps(name)}\ncommand = {json.dumps(command)}\n")
    path = folder / "team.toml"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def put_on_path(folder: Path, plays: Mapping[str, Sequence[Script]]) -> Path:
    """Write programs with the names of CLIs, which run one script per turn, and then repeat the last one.

    Return their folder; put it first on the PATH to run them instead of the real CLIs. For claude the prompts are in
    claude.turns.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for cli, scripts in plays.items():
        turns = folder / f"{cli}.turns"
        write_scripts(turns, scripts)
        write_program(programs / cli, cli, "--turns", str(turns))
    return programs


def write_scripts(folder: Path, scripts: Sequence[Script]) -> None:
    """Write what an agent does, turn by turn, into its folder; see bullpen.testing.agent.turns."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("script*"):
        old.unlink()
    for number, script in enumerate(scripts, start=1):
        for name in (f"script-{number}", "script"):
            (folder / name).write_text(json.dumps(script), encoding="utf-8")


def write_program(path: Path, cli: str, *arguments: str) -> None:
    """Write a program that is the scripted agent, with these arguments before its own."""
    command = shlex.join([*AGENT, "--as", cli, *arguments])
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
