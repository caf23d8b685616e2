"""What commands are given: as data in the API, and read from what a person types. A number is a turn."""

import re

from msgspec import Struct

from bullpen.team.team import Team
from bullpen.text.names import normalized

_BETWEEN = re.compile("[,，、&＆|｜]")
ALL = "all"


class Nothing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No argument."""


class Which(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Turns by their numbers, or all turns of members; nothing means all of them, or the latest."""

    turn: str | None = None
    member: str | None = None
    turns: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    everything: bool = False
    """All of them, where nothing means the latest."""

    @property
    def all_turns(self) -> tuple[str, ...]:
        """Every turn that is named."""
        return self.turns if self.turn is None else (self.turn, *self.turns)

    @property
    def all_members(self) -> tuple[str, ...]:
        """Every member that is named."""
        return self.members if self.member is None else (self.member, *self.members)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is named."""
        return not self.all_turns and not self.all_members


class Member(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member, and for a hand-over the turn to take over; without one, the latest."""

    member: str
    turn: str | None = None


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members, as in [NEXT: …]."""

    names: str


class Turns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waiting turns, the first one first."""

    turns: tuple[str, ...]


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the team works on; nothing, or "-", removes it."""

    task: str | None = None


class Title(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the conversation is called; nothing, or "-", removes it."""

    title: str | None = None


class Text(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was typed after the command."""

    text: str = ""


def read_which(text: str, team: Team) -> Which:
    """Return the turns and members that are named: "3 4", "max", "max & sarah", "max 14"; or "all"."""
    names = {normalized(name) for member in team.members for name in (member.name, member.display_name) if name}
    turns: list[str] = []
    members: list[str] = []
    for part in _BETWEEN.split(text):
        words, numbers = part.split(), []
        # A name may end in a number, so a whole name is tried first; a number alone is a turn.
        while words and words[-1].isdecimal() and (len(words) == 1 or normalized(" ".join(words)) not in names):
            numbers.append(words.pop())
        turns += reversed(numbers)
        if words:
            members.append(" ".join(words))
    if [normalized(name) for name in members] == [ALL] and ALL not in names and not turns:
        return Which(everything=True)
    return Which(turns=tuple(turns), members=tuple(members))
