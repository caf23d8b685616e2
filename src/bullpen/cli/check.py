"""`bullpen check`: what is wrong with a team file, all at once, who can hand over to whom, and who shares files."""

import argparse
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from bullpen.cli.cluster_option import add_cluster_option, cluster_address, need_cluster
from bullpen.errors import NoTeamFile, TeamProblem, UnreadableTeamFile
from bullpen.team.checks import hand_over_sentences, problems_of, shared_folder_sentences
from bullpen.team.file import read_team_file, team_path
from bullpen.team.reach import Reach, agents_reached
from bullpen.team.reader import read_team
from bullpen.team.stand_in_checks import stand_in_sentences
from bullpen.team.team import Team
from bullpen.team.templates import NAMES, template
from bullpen.text.numbers import counted
from bullpen.text.safe import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", nargs="?", default="team.toml", type=Path, help="the team file (default: team.toml)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_cluster_option(parser, "also ask this cluster whether its workers run the members that are in pools")


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
    team = read_team(text) if _is_fine(problems) else None
    if team is not None and options.cluster:
        problems += _asked(team, text, options.cluster)
    is_fine = _is_fine(problems)
    team = team if is_fine else None
    if options.json:
        said = {"file": str(options.file), "ok": is_fine, "problems": [vars(problem) for problem in problems]}
        print(json.dumps({**said, "hand_overs": {} if team is None else _hand_overs(team)}))
    else:
        _print(options.file, problems, team)
    return 0 if is_fine else 1


def _is_fine(problems: Sequence[TeamProblem]) -> bool:
    return all(problem.severity != "error" for problem in problems)


def _asked(team: Team, text: str, cluster: str) -> list[TeamProblem]:
    """Return what a cluster says about the members of a team that are in pools."""
    address = cluster_address(cluster)
    if address is None or not any(agent.pool for agent in team.agents):
        return []
    need_cluster()
    from bullpen.cluster.pool_check import pool_problems
    from bullpen.cluster.survey import survey

    return pool_problems(team, text, survey(address))


def _hand_overs(team: Team) -> dict[str, dict[str, list[str]]]:
    """Return for each agent the others that it can hand over to: by itself, and only with a person's yes."""
    kinds: tuple[Reach, ...] = ("freely", "if_allowed")
    return {agent.name: {how: agents_reached(team, agent, how) for how in kinds} for agent in team.agents}


def _print(path: Path, problems: Sequence[TeamProblem], team: Team | None) -> None:
    """Print what is wrong, and of a team that can be used what it can do and what comes next."""
    for problem in problems:
        place = f"{path}:{problem.line}" if problem.line else str(path)
        said = f"{problem.key}: {problem.text}" if problem.key else problem.text
        print(printable(f"{place}: {problem.severity}: {said}").replace("\n", " "))
    if team is None:
        errors = sum(problem.severity == "error" for problem in problems)
        print(printable(f"{path} cannot be used: {counted(errors, 'error')}."))
        return
    root = team_path(path).parent
    stand_ins = stand_in_sentences(team, root, os.environ)
    for sentence in (*hand_over_sentences(team), *shared_folder_sentences(team, root), *stand_ins):
        print(printable(sentence).replace("\n", " "))
    # No CLI is run here, so nothing is known about logins.
    has_clis = any(agent.agent and not agent.pool for agent in team.agents)
    first = "bullpen doctor (are its agents signed in?), then " if has_clis else ""
    print(printable(f"{path} is fine. Next: {first}{_command(team, shlex.quote(str(path)))}"))


def _command(team: Team, path: str) -> str:
    """Return the command that comes next: what its template says, or else the one that lets people talk with it."""
    if any(agent.pool for agent in team.agents):
        return f"bullpen serve {path} --cluster ADDRESS"
    then = template(team.name).then if team.name in NAMES else "bullpen chat {file}"
    return then.format(file=path)
