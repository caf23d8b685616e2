"""`bullpen doctor`: which agents are ready."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bullpen.cli.cluster_option import add_cluster_option
from bullpen.cli.option_types import named_agent
from bullpen.doctor import (
    Finding,
    agents_not_loaded,
    end_leftover_processes,
    examine_all,
    examine_for,
    examine_here,
    other_agents_here,
    who_asks,
    who_stands_in,
)
from bullpen.errors import BullpenError, WrongUsage
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.sandboxes import held_sentences
from bullpen.text.safe import printable

if TYPE_CHECKING:
    from rich.text import Text

TOML = ".toml"
TEAM_FILE = "team.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "agents",
        nargs="*",
        help="which agents to examine, e.g. claude codex, or a team file "
        f"(default: what {TEAM_FILE} needs, else all agents)",
    )
    parser.add_argument(
        "--all", action="store_true", help="every agent on this machine, regardless of what the team needs"
    )
    parser.add_argument("--live", action="store_true", help="also run one real turn with each; this may cost money")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_cluster_option(parser, "examine the nodes, workers and replicas of a cluster instead")


def run(options: argparse.Namespace) -> int:
    """Print what was found; 0 only if every agent that was asked for, or that the team needs, is ready."""
    if options.cluster:
        from bullpen.cli.doctor_cluster import examine_cluster

        return examine_cluster(options.cluster, as_json=options.json)
    if options.all and options.agents:
        raise WrongUsage("--all examines every agent on this machine, so name none: bullpen doctor --all")
    end_leftover_processes()
    team = None if options.all else _team(options.agents)
    names = [] if team else [named_agent(name) for name in options.agents]
    if options.live and not options.json:
        print("Running one turn with each agent. This may take a minute.", file=sys.stderr)
    findings = asyncio.run(_examined(team, names, all_here=options.all, live=options.live))
    if options.json:
        print(msgspec.json.encode([_as_json(finding) for finding in findings]).decode())
    else:
        if team:
            print(printable(f"What the team in {team.path} needs here:"))
        _print_table(findings)
        for sentence in (*who_asks(team), *who_stands_in(team, findings), *held_sentences(team.team)) if team else ():
            print(printable(sentence))
        for sentence in other_agents_here(cwd=Path.cwd()).values() if options.all else ():
            print(sentence)
        for problem in agents_not_loaded():
            print(printable(f"An agent from another package: {problem}"))
    needed = [finding for finding in findings if finding.needed]
    is_any_here = bool(needed) or not options.all
    return 0 if is_any_here and all(finding.ready for finding in needed) else 1


async def _examined(team: LoadedTeam | None, names: list[str], *, all_here: bool, live: bool) -> list[Finding]:
    if all_here:
        return await examine_here(cwd=Path.cwd(), live=live)
    if team:
        return await examine_for(team, live=live)
    return await examine_all(names, cwd=Path.cwd(), live=live)


def _team(words: list[str]) -> LoadedTeam | None:
    """Return the team that was named, or is in this folder if nothing was named."""
    if any(word.endswith(TOML) for word in words):
        if len(words) > 1:
            raise WrongUsage("Name one team file, or agents, for example: bullpen doctor claude codex")
        return load_team(Path(words[0]))
    if words or not Path(TEAM_FILE).is_file():
        return None
    try:
        return load_team(Path(TEAM_FILE))
    except BullpenError:
        print(f"{TEAM_FILE} cannot be used (see bullpen check), so all agents are examined.", file=sys.stderr)
        return None


def _as_json(finding: Finding) -> dict[str, object]:
    return {**msgspec.to_builtins(finding), "ready": finding.ready}


def _print_table(findings: list[Finding]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("agent", "", "version", "signed in", "program"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(
            Text(printable(finding.name), style="bold"),
            _mark(finding),
            Text(_version(finding)),
            Text(_signed_in(finding)),
            Text(printable(_short(finding.path))),
        )
    console = Console()
    console.print(table)
    for finding in findings:
        for problem in finding.problems if finding.needed else ():
            said = Text(f"{printable(finding.name)}: {printable(problem.text)} ")
            console.print(said + Text(printable(problem.hint), style="bold"), soft_wrap=True)
        if finding.remark and finding.needed and not any(finding.remark in one.hint for one in finding.problems):
            console.print(Text(f"{printable(finding.name)}: {printable(finding.remark)}"), soft_wrap=True)
        if finding.handshake and finding.needed:
            console.print(Text(f"{printable(finding.name)}: {printable(finding.handshake)}"), soft_wrap=True)


def _mark(finding: Finding) -> "Text":
    from rich.text import Text

    if finding.stands_in:
        return Text("stand-in, ready" if finding.ready else "stand-in, not ready", style="dim")
    if not finding.needed:
        return Text("not needed here", style="dim")
    return Text("ready", style="green") if finding.ready else Text("not ready", style="red")


def _short(path: str | None) -> str:
    home = str(Path.home())
    return "not found" if path is None else f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path


def _version(finding: Finding) -> str:
    if finding.version is None:
        return "-"
    return printable(finding.version) + ("" if finding.version_tested else " (not tested with bullpen)")


def _signed_in(finding: Finding) -> str:
    if finding.path is None or (finding.version is None and finding.signed_in is None):
        return "-"
    word = {True: f"yes, {finding.evidence}", False: "no", None: "unknown"}[finding.signed_in]
    return printable(word) + {True: "; it answered", False: "; it did not answer", None: ""}[finding.answered]
