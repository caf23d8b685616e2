"""`bullpen init`: a team file that works with the agents that are here."""

import argparse
import asyncio
import contextlib
import getpass
import os
import secrets
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bullpen.cli.option_types import named_agent
from bullpen.cli.parser import listed, suggestion
from bullpen.doctor import Finding, agent_names, examine_all, other_agents_here, short_name
from bullpen.errors import BullpenError, WrongUsage
from bullpen.team.file import team_path
from bullpen.team.reader import read_team
from bullpen.team.templates import DEFAULT_PERSON, NAMES, Template, team_text, template, templates
from bullpen.team.trust import Trust
from bullpen.team.usual_tests import runnable_tests, usual_tests
from bullpen.text.safe import printable

# Those that most people have come first, and so get the first role.
USUAL_ORDER = (
    *("claude-code", "openai-codex", "google-gemini", "qwen-code"),
    *("github-copilot", "opencode", "mistral-vibe", "pi"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.epilog = listed("templates", {one.name: one.purpose[:-1] for one in templates()})
    parser.add_argument("place", nargs="?", default=".", help="a folder, or a file that ends in .toml (default: here)")
    about = f"how the team works together; see below (default: {NAMES[0]})"
    parser.add_argument("--template", default=NAMES[0], choices=NAMES, type=_name, metavar="NAME", help=about)
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    players = parser.add_mutually_exclusive_group()
    players.add_argument(
        "--agents", metavar="NAMES", help="a member for each, e.g. claude,codex (default: those that are ready)"
    )
    players.add_argument("--scripted", action="store_true", help="agents that follow a script: no account is needed")


def run(options: argparse.Namespace) -> int:
    """Write the file, and say what to do next."""
    path = _target(options.place)
    if not options.force and os.path.lexists(path):
        raise _exists(path)
    way = template(options.template)
    named = [] if options.scripted or options.agents is None else _chosen(options.agents)
    findings = [] if options.scripted or options.agents is not None else _findings()
    found = _found(findings)
    # Who names agents wants each of them; of those that are found, the template has a role for the first ones. One
    # whose login may be missing would fail in its first turn, so it gets a role only if there is no other.
    agents = named or ([name for name, is_signed_in in found.items() if is_signed_in] or [*found])[: len(way.roles)]
    tests = usual_tests(path.parent)
    check = runnable_tests(path.parent)
    text = team_text(way, agents, person=_person(), file=shlex.quote(path.name), tests=tests, check=check)
    _write(path, text, replace=options.force)
    # Its author is the person who would be asked; of settings that are in the folder already, somebody else may be.
    Trust().remember(team_path(path), text)
    _say_next(path, text, way, asked_for_script=options.scripted)
    if others := [name for name in found if name not in agents]:
        print(f"Also here: {', '.join(map(short_name, others))}. To add them: {_again(options, found)}")
    for sentence in _about_logins(findings):
        print(sentence)
    if not options.scripted and options.agents is None and (others_here := other_agents_here(cwd=Path.cwd())):
        print(f'For agent = "acp" there is: {", ".join(others_here)}. `bullpen doctor --all` says what to write.')
    return 0


def _name(text: str) -> str:
    """Return the name of a template, also if it is called something else by now."""
    try:
        return template(text).name
    except KeyError:
        said = suggestion(text, NAMES) or f" There are: {', '.join(NAMES)}."
        raise argparse.ArgumentTypeError(f"there is no template {text!r}.{said}") from None


def _target(place: str) -> Path:
    path = Path(place)
    if path.is_dir() or place.endswith(os.sep):
        return path / "team.toml"
    if path.suffix == ".toml":
        return path
    if path.suffix or path.is_file():
        another = shlex.quote(str(path.with_suffix(".toml")))
        raise WrongUsage(f"The name of a team file ends in .toml, and {place} does not. Try: bullpen init {another}")
    return path / "team.toml"


def _exists(path: Path) -> BullpenError:
    return BullpenError(
        f"{path} exists already and was not changed. Use --force to replace it, or choose another name."
    )


def _chosen(names: str) -> list[str]:
    agents = [named_agent(name.strip()) for name in names.split(",") if name.strip()]
    if not agents:
        raise WrongUsage(f"--agents names no agent. Known agents: {', '.join(agent_names())}.")
    return agents


def _again(options: argparse.Namespace, agents: Iterable[str]) -> str:
    """Return the command that writes the same file with these agents."""
    template = [] if options.template == NAMES[0] else ["--template", options.template]
    place = [] if options.place == "." else [options.place]
    return shlex.join(["bullpen", "init", "--force", *template, "--agents", ",".join(map(short_name, agents)), *place])


def _findings() -> list[Finding]:
    """Look for agents, and return those that are here."""
    print("Looking for agents. This takes a few seconds.", file=sys.stderr)
    findings = asyncio.run(examine_all(cwd=Path.cwd()))
    return sorted((finding for finding in findings if finding.path is not None), key=_place_in_order)


def _found(findings: Sequence[Finding]) -> dict[str, bool]:
    """Return the agents that are ready, and whether it is known that they are signed in; else those that are here."""
    ready = {finding.agent: finding.signed_in is True for finding in findings if finding.ready}
    installed = {finding.agent: False for finding in findings}
    if installed and not ready:
        print("None of the agents here is ready; `bullpen doctor` says what to do.", file=sys.stderr)
    return ready or installed


def _about_logins(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield whose login is not known, and who was left out since it is not ready."""
    ready = [finding for finding in findings if finding.ready]
    if unknown := [finding.name for finding in ready if finding.signed_in is None]:
        names = ", ".join(unknown)
        how = "To find out, with one real turn each: bullpen doctor --live"
        yield f"It is not known whether these are signed in: {names}. {how}"
    if ready and (others := [finding for finding in findings if not finding.ready]):
        names = ", ".join(f"{one.name} (not signed in)" if one.signed_in is False else one.name for one in others)
        yield f"Left out, since they are not ready: {names}. `bullpen doctor` says what to do."


def _place_in_order(finding: Finding) -> int:
    return USUAL_ORDER.index(finding.agent) if finding.agent in USUAL_ORDER else len(USUAL_ORDER)


def _person() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return DEFAULT_PERSON


def _write(path: Path, text: str, *, replace: bool) -> None:
    """Write the whole file or nothing; replace another one only if that was asked for."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if replace:
            _replace(path, text)
        else:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError as error:
        raise BullpenError(f"{path} cannot be written: {error.strerror}.") from error


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _say_next(path: Path, text: str, way: Template, *, asked_for_script: bool) -> None:
    team = read_team(text)
    members = [f"{member.name} ({short_name(member.agent)})" for member in team.agents if member.agent]
    if members:
        print(printable(f"Wrote {path}: {', '.join(members)}."))
    elif asked_for_script:
        print(printable(f"Wrote {path}. Its agents follow a script."))
    else:
        print(printable(f"No agent is installed here, so the agents in {path} follow a script: no account is needed."))
        print("`bullpen doctor` says how to install real ones. Then: bullpen init --force")
    for member in team.agents:
        if member.allow:
            print(f"Without asking you, {member.name} may run: {', '.join(member.allow)}.")
    for check in team.checks:
        print(printable(f"After each turn that changes files, this runs: {shlex.join(check.command)}"))
    file = shlex.quote(str(path))
    print(printable(f"Next:\n  bullpen check {file}\n  {way.then.format(file=file)}"))
