"""Asking a person once whether a team file may run what it names."""

import shlex
import sys
from collections.abc import Iterator

from bullpen.errors import NotTrusted
from bullpen.team.file import LoadedTeam
from bullpen.team.trust import Runs, Trust, what_it_runs
from bullpen.text.safe import printable


def ensure_trusted(loaded: LoadedTeam, *, trust: bool) -> None:
    """Return if this team file may run: because it is known, because of --trust, or because a person says so now.

    Everything is shown on stderr, since a program may be reading stdout.
    """
    known = Trust()
    if known.knows(loaded.path, loaded.text):
        return
    if not trust:
        _show(loaded)
        _ask(loaded)
    known.remember(loaded.path, loaded.text)


def _ask(loaded: LoadedTeam) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotTrusted(loaded.path, "Read what it runs, and if you agree, add --trust.")
    print("Run it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotTrusted(loaded.path, "Change it as you like; you will be asked again.")


def _show(loaded: LoadedTeam) -> None:
    lines = [f"{loaded.path} is new here, or has changed. It would run:", ""]
    for runs in what_it_runs(loaded.team, loaded.root):
        lines += [*_lines(runs), ""]
    if loaded.team.instruction_file:
        lines += [f"  Every agent is given {loaded.root / loaded.team.instruction_file}.", ""]
    if loaded.team.outside_files:
        lines += [f"  Instruction files may be outside of {loaded.root}.", ""]
    print("\n".join(map(_one_line, lines)), file=sys.stderr)


def _lines(runs: Runs) -> Iterator[str]:
    yield f"  {runs.member}"
    yield f"    runs  {shlex.join(runs.command)}"
    yield f"    in    {runs.folder}"
    yield f"    may   {_permissions(runs)}"
    if runs.environment:
        yield f"    gets  the variables {', '.join(runs.environment)}"
    if runs.instruction_file:
        yield f"    reads {runs.instruction_file}"


def _permissions(runs: Runs) -> str:
    if not runs.restricted:
        return "do anything that you may: bullpen cannot restrict this program"
    allowed = {
        "read-only": "read",
        "edit": "read, and change files",
        "full": "do anything that you may, without asking",
    }
    unless = ", unless its own arguments say otherwise: " + shlex.join(runs.own_arguments) if runs.own_arguments else ""
    return f"{allowed[runs.permissions]} ({runs.permissions}){unless}"


def _one_line(text: str) -> str:
    """Return the text so that it can pass neither for another line nor for anything but text."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))
