"""Which team files may run their commands, and what they would run.

A team file names programs, and it may come with a stranger's repository. So a person is shown what it runs, once and
again after every change. Trust covers the file's text only, not what the programs and files it names do.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bullpen import config
from bullpen.agents.registry import is_restricted, spec_for
from bullpen.agents.spec import AgentSpec
from bullpen.errors import InvalidTeam, TeamProblem
from bullpen.permissions import Permission
from bullpen.team.kept_file import KeptFile
from bullpen.team.stand_ins import in_role
from bullpen.team.team import Check, Member, Team


class Runs(Struct, frozen=True, kw_only=True):
    """What one member of a team would run."""

    member: str
    """Its name; of a check, "check: " and its name, which no member can have."""
    command: tuple[str, ...]
    """The program and its arguments, except those that depend on the turn."""
    folder: Path
    """Absolute, with links resolved."""
    permissions: Permission
    allow: tuple[str, ...] = ()
    """Beginnings of the commands that its CLI lets it run without being asked."""
    deny: tuple[str, ...] = ()
    """What it may not do even if it asks."""
    restricted: bool
    """Whether the program is run with options that enforce its permissions; only known CLIs have them."""
    own_arguments: tuple[str, ...] = ()
    """The arguments that come from the team file; they may change what the CLI is allowed to do."""
    environment: tuple[str, ...] = ()
    """Environment variables passed on beyond the usual ones; a trailing * matches any ending."""
    instruction_file: Path | None = None
    """None: the CLI's usual one, or none at all."""
    when: str = ""
    """When it runs, if not when somebody asks it."""


def what_it_runs(team: Team, root: Path) -> tuple[Runs, ...]:
    """Return what every agent of a team in this folder would run, and every check."""
    agents = [_runs(member, root) for member in team.agents]
    stand_ins = [
        replace(_runs(in_role(team, member, by), root), member=f"{member.name}, if {by} stands in for it")
        for member in team.agents
        for by in member.stand_in
    ]
    return (*agents, *stand_ins, *(_check(check, root) for check in team.checks))


def _check(check: Check, root: Path) -> Runs:
    returns = f", and returns to its agent up to {check.most_returns} times if it is red"
    return Runs(
        member=f"check: {check.name}",
        command=check.command,
        folder=Path(os.path.realpath(root / check.cwd)),
        permissions="full",
        restricted=False,
        when=f"after every turn that changes files there{returns if check.on_red == 'return' else ''}",
    )


def _runs(member: Member, root: Path) -> Runs:
    spec = spec_for(member.agent, member.command)
    try:
        arguments = spec.arguments(member.permissions, member.model, member.allow)
    except ValueError as error:
        raise InvalidTeam([TeamProblem(str(error), key=member.name)]) from error
    return Runs(
        member=member.name,
        command=(spec.program, *arguments, *member.arguments, *spec.last_arguments),
        folder=Path(os.path.realpath(root / member.cwd)),
        permissions=member.permissions,
        allow=member.allow if member.permissions == "ask" or _are_allowed(spec, member) else (),
        deny=member.deny,
        restricted=is_restricted(member.agent),
        own_arguments=member.arguments,
        environment=(*spec.environment, *member.env),
        instruction_file=root / member.instruction_file if member.instruction_file else None,
    )


def _are_allowed(spec: AgentSpec, member: Member) -> bool:
    return bool(spec.allow_arguments(member.permissions, member.allow))


class Trust:
    """The team files that a person has agreed to run, each with the hash of its text."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = KeptFile(file or config.trust_file())

    def knows(self, path: Path, text: str) -> bool:
        """Return whether this exact text is trusted at this path. If the record cannot be read, nothing is."""
        try:
            return _hashes(self._file.read()).get(str(path.absolute())) == _hash_of(text)
        except (OSError, ValueError, RecursionError):
            return False

    def remember(self, path: Path, text: str) -> None:
        """Trust this text at this path from now on."""
        self._file.change(lambda content: _hashes(content) | {str(path.absolute()): _hash_of(text)})


def _hashes(content: Any) -> dict[str, str]:
    is_valid = isinstance(content, dict) and all(isinstance(value, str) for value in content.values())
    return content if is_valid else {}


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
