"""`bullpen check`: what is wrong with a team file, all at once, who can hand over to whom, and who shares files."""

import argparse
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from bullpen.cli.cluster_option import add_cluster_option, cluster_address, need_cluster
from bullpen.errors import InvalidTeam, NoTeamFile, TeamProblem, UnreadableTeamFile
from bullpen.team.approval_rules import narrowed
from bullpen.team.checks import hand_over_sentences, problems_of, shared_folder_sentences
from bullpen.team.file import read_team_file, team_path
from bullpen.team.reach import Reach, agents_reached
from bullpen.team.reader import read_team
from bullpen.team.sandboxes import unheld_sentences
from bullpen.team.stand_in_checks import stand_in_sentences
from bullpen.team.standing_answers import StandingAnswers
from bullpen.team.team import Team
from bullpen.team.templates import NAMES, template
from bullpen.team.trust import Trust, settings_sentences
from bullpen.text.asked_words import words_of
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
    team = _team(text)
    if team is not None and options.cluster and _is_fine(problems):
        problems += _asked(team, text, options.cluster)
    is_fine = _is_fine(problems)
    if options.json:
        said = {"file": str(options.file), "ok": is_fine, "problems": [vars(problem) for problem in problems]}
        print(json.dumps({**said, "hand_overs": _hand_overs(team) if team and is_fine else {}}))
    else:
        _print(options.file, problems, team)
    return 0 if is_fine else 1


def _team(text: str) -> Team | None:
    """Return the team that other commands would run, or None if they refuse the file."""
    try:
        return read_team(text)
    except InvalidTeam:
        return None


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
    if errors := sum(problem.severity == "error" for problem in problems):
        then = "can be used, but not all of it works" if team else "cannot be used"
        print(printable(f"{path} {then}: {counted(errors, 'error')}."))
    if errors or team is None:
        return
    root = team_path(path).parent
    stand_ins = stand_in_sentences(team, root, os.environ)
    trust = Trust()
    settings = settings_sentences(team, root, trust.agreed(team_path(path)))
    narrowed_rules = _narrowed(team) if trust.has_agreed_to_wider_rules(team_path(path)) else ()
    wider = _asked_again(StandingAnswers(team_path(path)))
    for sentence in (
        *hand_over_sentences(team),
        *shared_folder_sentences(team, root),
        *stand_ins,
        *settings,
        *unheld_sentences(team),
        *narrowed_rules,
        *wider,
    ):
        print(printable(sentence).replace("\n", " "))
    # No CLI is run here, so nothing is known about logins.
    has_clis = any(agent.agent and not agent.pool for agent in team.agents)
    first = "bullpen doctor (are its agents signed in?), then " if has_clis else ""
    print(printable(f"{path} is fine. Next: {first}{_command(team, shlex.quote(str(path)))}"))


def _narrowed(team: Team) -> Iterator[str]:
    """Yield each rule that allows less than in earlier versions, with both."""
    for agent in team.agents:
        if agent.permissions == "ask":
            yield from (f"{agent.name}: allow {text}." for text in filter(None, map(narrowed, agent.allow)))


def _asked_again(standing: StandingAnswers) -> Iterator[str]:
    """Yield what was always allowed in an earlier version, and was wider than what was shown."""
    for member, answers in standing.wider().items():
        for one in answers:
            yield (
                f"{member}: your earlier “always” was wider than what you were shown, so you are asked again: "
                f"{words_of(one)}"
            )


def _command(team: Team, path: str) -> str:
    """Return the command that comes next: what its template says, or else the one that lets people talk with it."""
    if any(agent.pool for agent in team.agents):
        return f"bullpen serve {path} --cluster ADDRESS"
    then = template(team.name).then if team.name in NAMES else "bullpen chat {file}"
    return then.format(file=path)
