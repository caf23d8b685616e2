"""`bullpen rehearse`: the team's real CLIs against models on this machine, without spending a token."""

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from bullpen.cli.trust_question import ensure_trusted
from bullpen.rehearsal import Rehearsed, rehearse
from bullpen.team.file import LoadedTeam, load_team
from bullpen.text.numbers import duration
from bullpen.text.safe import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", nargs="?", default="team.toml", type=Path, help="the team file (default: team.toml)")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each agent")
    parser.add_argument("--trust", action="store_true", help="run what the team file names without asking")


def run(options: argparse.Namespace) -> int:
    """Print how each agent's rehearsal went; 0 only if nothing was wrong."""
    loaded = load_team(options.file)
    ensure_trusted(loaded, trust=options.trust)
    if not options.json:
        print("Each agent runs one turn with its real CLI; the models are simulated on this machine.", file=sys.stderr)
    return asyncio.run(_run(loaded, as_json=options.json))


async def _run(loaded: LoadedTeam, *, as_json: bool) -> int:
    all_passed, tried = True, 0
    async for rehearsed in rehearse(loaded):
        all_passed &= rehearsed.passed
        tried += bool(rehearsed.checks)
        print(_json(rehearsed) if as_json else printable(_lines(rehearsed)), flush=True)
    if not tried:
        said = "Nothing was rehearsed: only known CLIs can be run against simulated models, and this team has none."
        print(said, file=sys.stderr)
    return 0 if all_passed else 1


def _json(rehearsed: Rehearsed) -> str:
    return msgspec.json.encode({**msgspec.to_builtins(rehearsed), "passed": rehearsed.passed}).decode()


def _lines(rehearsed: Rehearsed) -> str:
    head = f"{rehearsed.member} ({rehearsed.agent})"
    if not rehearsed.checks:
        return f"- {head}: {rehearsed.remark}"
    checks = [f"    {'ok ' if check.passed else 'NO '} {check.text}" for check in rehearsed.checks]
    return "\n".join([f"{'✓' if rehearsed.passed else '✗'} {head}, {duration(rehearsed.seconds)}", *checks])
