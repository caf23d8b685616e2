"""`bullpen check`: everything that is wrong with a team file, at once, and who can hand over to whom."""

import argparse
import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bullpen.errors import NoTeamFile, TeamProblem, UnreadableTeamFile
from bullpen.team.checks import hand_over_sentences, problems_of
from bullpen.team.file import read_team_file, team_path
from bullpen.team.reach import Reach, agents_reached
from bullpen.team.reader import read_team
from bullpen.team.team import Team
from bullpen.text.safe import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", nargs="?", default="team.toml", type=Path, help="the team file (default: team.toml)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: argparse.Namespace) -> int:
    """Print what is wrong; return 0 only if nothing is. Warnings and remarks are not errors."""
    text = ""
    try:
        text = read_team_file(options.file)
        problems = problems_of(text, team_path(options.file).parent, environ=os.environ)
    except (NoTeamFile, UnreadableTeamFile) as error:
        if not options.json:
            raise
        problems = [TeamProblem(str(error))]
    is_fine = all(problem.severity != "error" for problem in problems)
    team = read_team(text) if is_fine else None
    if options.json:
        said = {"file": str(options.file), "ok": is_fine, "problems": [vars(problem) for problem in problems]}
        print(json.dumps({**said, "hand_overs": {} if team is None else _hand_overs(team)}))
    else:
        _print(options.file, problems, () if team is None else hand_over_sentences(team))
    return 0 if is_fine else 1


def _hand_overs(team: Team) -> dict[str, dict[str, list[str]]]:
    """Return for each agent the others that it can hand over to: by itself, and only with a person's yes."""
    kinds: tuple[Reach, ...] = ("freely", "if_allowed")
    return {agent.name: {how: agents_reached(team, agent, how) for how in kinds} for agent in team.agents}


def _print(path: Path, problems: Sequence[TeamProblem], hand_overs: Iterable[str]) -> None:
    for problem in problems:
        place = f"{path}:{problem.line}" if problem.line else str(path)
        said = f"{problem.key}: {problem.text}" if problem.key else problem.text
        print(printable(f"{place}: {problem.severity}: {said}").replace("\n", " "))
    for sentence in hand_overs:
        print(printable(sentence).replace("\n", " "))
    counts = Counter(problem.severity for problem in problems)
    if not counts["error"]:
        print(printable(f"{path} is fine. Next: bullpen chat {shlex.quote(str(path))}"))
    else:
        print(printable(f"{path} cannot be used: {counts['error']} {'error' if counts['error'] == 1 else 'errors'}."))
