"""`bullpen check`: everything that is wrong with a team file, at once."""

import argparse
import json
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bullpen.errors import NoTeamFile, TeamProblem, UnreadableTeamFile
from bullpen.team.checks import problems_of
from bullpen.team.file import read_team_file, team_path
from bullpen.text.safe import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", nargs="?", default="team.toml", type=Path, help="the team file (default: team.toml)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: argparse.Namespace) -> int:
    """Print what is wrong; return 0 only if nothing is. Warnings and remarks are not errors."""
    try:
        problems = _problems(options.file)
    except (NoTeamFile, UnreadableTeamFile) as error:
        if not options.json:
            raise
        problems = [TeamProblem(str(error))]
    is_fine = all(problem.severity != "error" for problem in problems)
    if options.json:
        print(
            json.dumps({"file": str(options.file), "ok": is_fine, "problems": [vars(problem) for problem in problems]})
        )
    else:
        _print(options.file, problems)
    return 0 if is_fine else 1


def _problems(path: Path) -> list[TeamProblem]:
    return problems_of(read_team_file(path), team_path(path).parent, environ=os.environ)


def _print(path: Path, problems: Sequence[TeamProblem]) -> None:
    for problem in problems:
        place = f"{path}:{problem.line}" if problem.line else str(path)
        said = f"{problem.key}: {problem.text}" if problem.key else problem.text
        print(printable(f"{place}: {problem.severity}: {said}").replace("\n", " "))
    counts = Counter(problem.severity for problem in problems)
    if not counts["error"]:
        print(printable(f"{path} is fine. Next: bullpen chat {shlex.quote(str(path))}"))
    else:
        print(printable(f"{path} cannot be used: {counts['error']} {'error' if counts['error'] == 1 else 'errors'}."))
