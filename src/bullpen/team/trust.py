"""Which team files may run their commands, and what they would run.

A team file names programs, and it may come with a stranger's repository. So a person is shown what it runs, once for
each text: going back to an earlier one needs no second yes. Trust covers the file's text and the settings of its
agents' folders that were shown with it, not what the programs and files it names do.
"""

import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bullpen import config
from bullpen.agents.folder_settings import Reading, reading
from bullpen.agents.registry import is_restricted, spec_for
from bullpen.agents.settings_choice import names_of
from bullpen.agents.spec import AgentSpec
from bullpen.errors import InvalidTeam, TeamProblem
from bullpen.permissions import Permission
from bullpen.team.kept_file import KeptFile
from bullpen.team.left_out import words_of
from bullpen.team.sandboxes import is_member_held, sandbox_words
from bullpen.team.stand_ins import in_role
from bullpen.team.team import Check, Member, Team

MOST_TEXTS = 100
"""Texts of one team file that are known, and settings beside it; the latest of which a person has agreed to."""
MEANING_OF_RULES = "whole words"
"""What is remembered beside a text: what rules of `allow` mean now."""


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
    is_held: bool = False
    """Whether the system holds it to them here."""
    sandbox: str = ""
    """What the system holds it to, or why it does not; empty: nothing can be held here, and the file says nothing."""
    settings: Reading = Reading()
    """Settings in its folder that its CLI would read."""


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
        is_held=is_member_held(member),
        sandbox=sandbox_words(member),
        settings=_settings(member, spec, root),
    )


def _settings(member: Member, spec: AgentSpec, root: Path) -> Reading:
    """Return which settings it would read; of one that runs on workers, none of this machine."""
    if member.pool:
        return Reading()
    return reading(spec.with_permissions(member.permissions).folder_settings, member.permissions, root / member.cwd)


def settings_marks(team: Team, root: Path) -> frozenset[str]:
    """Return what people would agree to with the settings that the agents of a team would read."""
    return frozenset().union(*(runs.settings.marks for runs in what_it_runs(team, root)))


def _are_allowed(spec: AgentSpec, member: Member) -> bool:
    return bool(spec.allow_arguments(member.permissions, member.allow))


def settings_sentences(team: Team, root: Path, agreed: Collection[str]) -> list[str]:
    """Return a sentence for each agent whose folder has settings that it is started without, or not started with."""
    sentences = []
    for runs in what_it_runs(team, root):
        missing = runs.settings.not_agreed(agreed)
        without = (*(file for file in missing if file not in runs.settings.must), *runs.settings.left_out)
        if must := [file for file in missing if file in runs.settings.must]:
            why = "its CLI cannot leave them out, and nobody has agreed to them; `bullpen chat` asks"
            sentences.append(f"{runs.member} is not started with {names_of(must)}: {why}.")
        elif without:
            why = "nobody has agreed to them; `bullpen chat` asks" if missing else "its permissions are not full"
            sentences.append(f"{runs.member} does not get the project's {words_of(without, runs.folder)}: {why}.")
    return sentences


class Trust:
    """The team files that a person has agreed to run, each with the hashes of its texts, the latest last."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = KeptFile(file or config.trust_file())

    def knows(self, path: Path, text: str) -> bool:
        """Return whether this exact text is trusted at this path. If the record cannot be read, nothing is."""
        return _hash_of(text) in self._lines(str(path.absolute()))

    def agreed(self, path: Path) -> frozenset[str]:
        """Return the marks of the settings to which a person has agreed for this team file; none if it is not known."""
        return frozenset(self._lines(_settings_key(path)))

    def has_agreed_to_wider_rules(self, path: Path) -> bool:
        """Return whether a person has agreed to this team file only when its rules of `allow` allowed more."""
        return bool(self._lines(str(path.absolute()))) and not self._lines(_rules_key(path))

    def remember(self, path: Path, text: str, settings: Collection[str] = ()) -> None:
        """Trust this text at this path from now on, and these settings, beside those from before."""
        marks = sorted(mark.replace("\n", " ") for mark in settings)
        new = {
            str(path.absolute()): [_hash_of(text)],
            _settings_key(path): marks,
            _rules_key(path): [MEANING_OF_RULES],
        }

        def changed(content: Any) -> dict[str, str]:
            known = _hashes(content)
            for name, lines in new.items():
                kept = [line for line in _lines_of(known.pop(name, "")) if line not in lines]
                # All of what a person has just agreed to counts, however much it is.
                if latest := [*kept, *lines][-max(MOST_TEXTS, len(lines)) :]:
                    known[name] = "\n".join(latest)
            return known

        self._file.change(changed)

    def _lines(self, name: str) -> list[str]:
        try:
            return _lines_of(_hashes(self._file.read()).get(name, ""))
        except (OSError, ValueError, RecursionError):
            return []


def _lines_of(text: str) -> list[str]:
    # Not splitlines: a file's name may hold what ends a line there, and so pretend to be another mark.
    return [line for line in text.split("\n") if line]


def _settings_key(path: Path) -> str:
    """Return the name of an entry that no path has."""
    return f"settings {path.absolute()}"


def _rules_key(path: Path) -> str:
    """Do the same for what its rules mean."""
    return f"rules {path.absolute()}"


def _hashes(content: Any) -> dict[str, str]:
    is_valid = isinstance(content, dict) and all(isinstance(value, str) for value in content.values())
    return content if is_valid else {}


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
