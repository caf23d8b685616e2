"""A stage: a team of scripted agents, so that a conversation costs nothing and is always the same."""

import json
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

Script = Sequence[Mapping[str, object]]
"""The steps of one turn: see bullpen.testing.agent."""

PROGRAM = """#!{python} -SE
import os, sys
turn = os.path.getsize({counter!r}) if os.path.exists({counter!r}) else 0
if "--version" not in sys.argv:
    with open({counter!r}, "a") as file:
        file.write(".")
script = {scripts!r}[min(turn, {last})]
os.environ["PYTHONPATH"] = {path!r}
os.execv({python!r}, [{python!r}, "-m", "bullpen.testing.agent", "--as", {cli!r}, "--script", script, *sys.argv[1:]])
"""


def write_team(folder: Path, agents: Mapping[str, Script], *, people: Sequence[str] = ("kim",), head: str = "") -> Path:
    """Write a team file whose agents each run one script in every turn; return its path."""
    parts = [head or 'name = "stage"\n']
    parts += [f"[[member]]\nname = {json.dumps(person)}\n" for person in people]
    for name, script in agents.items():
        command = [sys.executable, "-m", "bullpen.testing.agent", "--as", "text", "--script", json.dumps(script)]
        parts.append(f"[[member]]\nname = {json.dumps(name)}\ncommand = {json.dumps(command)}\n")
    path = folder / "team.toml"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def put_on_path(folder: Path, plays: Mapping[str, Sequence[Script]]) -> Path:
    """Write programs with the names of CLIs, which run one script per turn, and then repeat the last one.

    Return their folder; put it first on the PATH to run them instead of the real CLIs.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for cli, scripts in plays.items():
        files = [folder / f"{cli}-{number}.json" for number in range(len(scripts))]
        for file, script in zip(files, scripts, strict=True):
            file.write_text(json.dumps(script), encoding="utf-8")
        program = programs / cli
        program.write_text(_program(folder, cli, [str(file) for file in files]), encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return programs


def _program(folder: Path, cli: str, files: list[str]) -> str:
    return PROGRAM.format(
        python=sys.executable,
        counter=str(folder / f"{cli}.turns"),
        scripts=files,
        last=len(files) - 1,
        path=os.pathsep.join(path for path in sys.path if path),
        cli=cli,
    )
