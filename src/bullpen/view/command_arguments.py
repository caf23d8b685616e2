"""What commands are given: as data in the API, and read from what a person types. A number is a turn."""

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.approvals import Scope
from bullpen.errors import BullpenError
from bullpen.team.team import Team
from bullpen.text.names import normalized

_BETWEEN = re.compile("[,，、&＆|｜]")
_QUESTION = re.compile(r"([0-9]+)/([bcdfghjkmnpqrstvwxz]{3})")
"""The name of a question, as its card shows it: its turn, and three letters."""
ALL = "all"
REMOVE = "-"
"""What removes a task or a title."""


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


class Reviewed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A review, by one of its members; without one, the only one."""

    member: str | None = None


class Leftover(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several results that was not picked, by its member or its turn; or all that are left of a task."""

    member: str | None = None
    turn: str | None = None
    """The turn that did it; with a member or with everything, any turn of the task that is meant."""
    everything: bool = False


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members, as in [NEXT: …]."""

    names: str


class OneTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn; without one, the last one that is meant."""

    turn: str | None = None


class Undone(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn to take back; without one, the last one that changed files."""

    turn: str | None = None
    everything: bool = False
    """Whether also what a person may have changed meanwhile is taken back."""


class ThatTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn."""

    turn: str


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


class OneAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a question of a running agent; without a turn or a question, the only one that is open."""

    turn: str | None = None
    question: str | None = None
    scope: Scope = "once"
    """For how long a yes holds."""
    text: str = ""
    """The answer to a question that is not about doing something; with a no, why not."""
    command: str = ""
    """Another command to run instead."""


class Raise(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a budget is raised, and whose: a member's, the "conversation"'s, or without one all that are used up."""

    how: Literal["once", "always"] = "once"
    budget: str | None = None


class Told(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words to a member that is working."""

    member: str
    text: str


NOT_SHOWN = "(not shown)"
"""The question of an answer that was typed where no question was shown."""
SCOPES: dict[str, Scope] = {"once": "once", "turn": "turn", "conversation": "conversation", "always": "team"}


def read_answer(text: str, _: Team) -> OneAnswer:
    """Return a yes: "", "14", "turn", "always 14", or words."""
    words = text.split(None, 1)
    if words and (scope := SCOPES.get(words[0].lower())):
        return replace(read_refusal("".join(words[1:]), _), scope=scope)
    return read_refusal(text, _)


def read_refusal(text: str, _: Team) -> OneAnswer:
    """Return a no: "", "14", "14/bkq", or words."""
    words = text.split()
    if words and (named := _QUESTION.fullmatch(words[0])):
        return OneAnswer(turn=named[1], question=named[2], text=" ".join(words[1:]))
    turn = words.pop(0) if words and words[0].isdecimal() else None
    return OneAnswer(turn=turn, text=" ".join(words))


def read_instead(text: str, _: Team) -> OneAnswer:
    """Return another command to run."""
    if not text:
        raise BullpenError("/instead needs a command, for example: /instead pytest -q tests")
    first, command = [*text.split(None, 1), ""][:2]
    if command and (named := _QUESTION.fullmatch(first)):
        return OneAnswer(turn=named[1], question=named[2], command=command)
    return OneAnswer(command=text)


def read_raise(text: str, _: Team) -> Raise:
    """Return how a budget is raised: "", "once", "always max"."""
    first, rest = [*text.split(None, 1), "", ""][:2]
    match first.lower():
        case "always":
            return Raise(how="always", budget=rest.strip() or None)
        case "once":
            return Raise(budget=rest.strip() or None)
        case _:
            return Raise(budget=text or None)


def read_told(text: str, team: Team) -> Told:
    """Return who is told something, and what."""
    words = text.split(None, 1)
    for member in team.agents:
        for name in (member.name, member.display_name):
            if name and normalized(text).startswith(f"{normalized(name)} "):
                words = [member.name, text[len(name) :].strip()]
    if len(words) < 2:
        raise BullpenError("/tell needs a name and words, for example: /tell max look at the tests, too")
    return Told(member=words[0], text=words[1])


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


def read_names(text: str, _: Team) -> Names:
    """Return the names that somebody typed."""
    if not text:
        raise BullpenError("/next needs a name, for example: /next sarah, or /next sarah & max")
    return Names(names=text)


def read_hand(text: str, team: Team) -> Member:
    """Return who answers, and in which turn."""
    which = read_which(text, team)
    if len(which.members) != 1 or len(which.turns) > 1:
        raise BullpenError("/hand needs one name, for example: /hand max, or /hand max 14 for turn 14")
    return Member(member=which.members[0], turn=which.turns[0] if which.turns else None)


def read_resolve(text: str, team: Team) -> Member:
    """Return who resolves a conflict, and of which turn."""
    which = read_which(text, team)
    if len(which.members) != 1 or len(which.turns) > 1:
        raise BullpenError("/resolve needs one name, for example: /resolve max, or /resolve max 14 for turn 14")
    return Member(member=which.members[0], turn=which.turns[0] if which.turns else None)


def read_pick(text: str, team: Team) -> Member:
    """Return whose result is picked, and of which task."""
    which = read_which(text, team)
    if len(which.members) + bool(which.turns) < 1 or len(which.members) > 1 or len(which.turns) > 1:
        raise BullpenError("/pick needs one name, for example: /pick max, or /pick 14 for what turn 14 did")
    if not which.members:
        return Member(member=which.turns[0])
    return Member(member=which.members[0], turn=which.turns[0] if which.turns else None)


def read_leftover(text: str, team: Team) -> Leftover:
    """Return what is dropped of several results."""
    which = read_which(text, team)
    if len(which.members) > 1 or len(which.turns) > 1:
        raise BullpenError("One at a time, for example: /discard max, or /discard all for all that were not picked")
    member, turn = (next(iter(named), None) for named in (which.members, which.turns))
    names = {normalized(one.name) for one in team.members}
    if which.everything or (member is not None and normalized(member) == ALL and ALL not in names):
        return Leftover(turn=turn, everything=True)
    return Leftover(member=member, turn=turn)


def read_conflict(text: str, _: Team) -> OneTurn:
    """Return the turn whose conflict is meant, if somebody typed it."""
    words = text.split()
    if len(words) > 1:
        raise BullpenError("One turn at a time, for example: /take 14, or /take for the latest conflict")
    return OneTurn(turn=words[0] if words else None)


def read_turns(text: str, team: Team) -> Turns:
    """Return the numbers of turns."""
    which = read_which(text, team)
    if not which.turns or which.members:
        raise BullpenError("/reorder needs the numbers of waiting turns, for example: /reorder 5 3")
    return Turns(turns=which.turns)


def read_task(text: str, _: Team) -> Task | Nothing:
    """Return the task, or nothing to show it."""
    return Task(task=text) if text else Nothing()


def read_title(text: str, _: Team) -> Title | Nothing:
    """Return the title, or nothing to show it."""
    return Title(title=text) if text else Nothing()


def read_member(text: str, _: Team) -> Member:
    """Return a name."""
    if not text:
        raise BullpenError("/prompt needs a name, for example: /prompt sarah")
    return Member(member=text)


def read_forget(text: str, _: Team) -> Member:
    """Return a name."""
    if not text:
        raise BullpenError("/forget needs a name, for example: /forget max")
    return Member(member=text)


def read_merge(text: str, _: Team) -> Member:
    """Return a name."""
    if not text:
        raise BullpenError("/merge needs a name, for example: /merge max")
    return Member(member=text)


def read_text(text: str, _: Team) -> Text:
    """Return the text."""
    return Text(text=text)


def read_who(text: str, _: Team) -> Nothing:
    """Return nothing; who wants to choose a model is told where that is done."""
    if text:
        raise BullpenError(
            "/who takes nothing. A member's model is set in the team file, below its name, for example: "
            'model = "opus". It counts when the conversation is opened again.'
        )
    return Nothing()


def read_note(text: str, _: Team) -> Text:
    """Return the text of a note."""
    if not text:
        raise BullpenError("/note needs a text, for example: /note the deadline is Friday")
    return Text(text=text)


def read_reviewed(text: str, _: Team) -> Reviewed:
    """Return the name that somebody typed, if any."""
    return Reviewed(member=text or None)


def read_words(text: str, _: Team) -> Text:
    """Return the words to find."""
    if not text:
        raise BullpenError("/search needs words, for example: /search cookie")
    return Text(text=text)


def read_one_turn(text: str, _: Team) -> OneTurn:
    """Return the turn that somebody typed, if any."""
    words = text.split()
    if len(words) > 1:
        raise BullpenError("One turn at a time, for example: /undo 14, or /undo for the last one that changed files")
    return OneTurn(turn=words[0] if words else None)


def read_undone(text: str, team: Team) -> Undone:
    """Return the turn that somebody typed, if any, and whether all of it is to be taken back."""
    words = text.split()
    everything = words[-1:] == ["all"]
    turn = read_one_turn(" ".join(words[:-1] if everything else words), team).turn
    return Undone(turn=turn, everything=everything)


def read_that_turn(text: str, team: Team) -> ThatTurn:
    """Return the turn that somebody typed."""
    if (turn := read_one_turn(text, team).turn) is None:
        raise BullpenError("/rewind needs the number of a turn, for example: /rewind 14")
    return ThatTurn(turn=turn)
