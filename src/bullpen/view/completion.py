"""What can follow what a person has typed: names, markers, commands. Pure."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from bullpen.team.team import Team
from bullpen.text.names import normalized
from bullpen.text.patterns import pattern
from bullpen.view.commands import COMMANDS, Command, is_command

MARKERS = {
    "[NEXT: ": "hand over to somebody",
    "[DROP: ": "remove somebody's waiting turns, or ALL",
    "[TEAM_TASK] ": "set what the team works on",
    "[FROM: ": "say who you are",
    "[DIFF] ": "show what the last turn changed to those who are asked",
    "[SUM UP] ": "let an agent sum up what agents are no longer shown",
    "[CHECKS] ": "show what the last checks said to those who are asked",
}
MOST_OPTIONS = 8
LONGEST = 1000
"""Characters before the cursor that are looked at in a line; nothing that can be completed is longer."""

_COMMAND = pattern(r"/([a-z-]*)", re.IGNORECASE)
_COMMAND_ARGUMENT = pattern(r"/([a-z-]+) +(.*)", re.IGNORECASE)
_MARKER_NAME = pattern(r"\[(next|drop|from):\s*([^\]\n]*)$", re.IGNORECASE)
_MARKER = pattern(r"(?:^|\s)(\[[a-z_]*)$", re.IGNORECASE)
# With a full stop or the like after it, a name is whole.
_AT = pattern(r"(?:^|[\s，。：、（(])[@＠]([^\s@＠]*(?<![.,!?;:)，。！？；：）]))$")
_EVERYONE = {"next": {"all": "every agent at once"}, "drop": {"ALL": "every waiting turn"}}
_BETWEEN_NAMES = pattern("[,，、&＆|｜]|->|→")


class Option(Struct, frozen=True, kw_only=True):
    """Something that can replace what was typed last."""

    label: str
    help: str = ""
    insert: str
    replaces: int
    """How many characters before the cursor it replaces."""


def names_of(team: Team) -> dict[str, str]:
    """Return every member's name, with a word about who it is: agents first, since people hardly ask themselves."""
    members = sorted(team.members, key=lambda member: member.type == "human")
    return {member.name: member.role or member.program or "person" for member in members}


def options_for(before: str, names: Mapping[str, str], more: Iterable[Command] = ()) -> list[Option]:
    """Return what can follow. `before` is the text before the cursor, names come with a word of help.

    `more` are commands that only this door has.
    """
    commands = {**COMMANDS, **{command.name: command for command in more}}
    if (found := _COMMAND.fullmatch(before)) is not None:
        if is_command(found[1], more):
            return []
        purposes = {name: command.purpose for name, command in commands.items()}
        return _fitting(found[1], purposes, before="/", after=" ", replaces=len(before))
    if (found := _COMMAND_ARGUMENT.fullmatch(before)) is not None:
        command = commands.get(found[1].lower())
        if command is None or "NAME" not in command.argument:
            return []
        return _names(_BETWEEN_NAMES.split(found[2])[-1].lstrip(), names, after="")
    line = before.rpartition("\n")[2][-LONGEST:]
    if (found := _MARKER_NAME.search(line)) is not None:
        others = {**names, **_EVERYONE.get(found[1].lower(), {})}
        if found[1].lower() == "from":
            # Only people are speakers.
            others = dict(reversed(others.items()))
        return _names(_BETWEEN_NAMES.split(found[2])[-1].lstrip(), others, after="] ")
    if (found := _AT.search(line)) is not None:
        return _fitting(found[1], {**names, **_EVERYONE["next"]}, before="@", after=" ", replaces=len(found[1]) + 1)
    if (found := _MARKER.search(line)) is not None:
        return _fitting(found[1], MARKERS, replaces=len(found[1]))
    return []


def _names(typed: str, names: Mapping[str, str], *, after: str) -> list[Option]:
    if typed in names:
        return []
    return _fitting(typed, names, after=after, replaces=len(typed))


def _fitting(
    typed: str, choices: Mapping[str, str], *, before: str = "", after: str = "", replaces: int
) -> list[Option]:
    options = (
        Option(label=f"{before}{name}".strip(), help=words, insert=f"{before}{name}{after}", replaces=replaces)
        for name, words in choices.items()
        if _begins(name, typed)
    )
    return list(options)[:MOST_OPTIONS]


def _begins(name: str, typed: str) -> bool:
    return name.casefold().startswith(typed.casefold()) or bool(
        normalized(typed) and normalized(name).startswith(normalized(typed))
    )
