"""The team file: who is in the team, what each may do, and everything that is wrong with it at once.

Pure: it takes the text of a team.toml. Which files exist and which CLIs are installed is for others to say.
"""

import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from bullpen.errors import InvalidTeam, TeamProblem
from bullpen.names import nearest, normalized
from bullpen.toml_lines import TomlLines

MemberType = Literal["human", "ai"]
Permission = Literal["read-only", "edit", "full"]
Visibility = Literal["all", "addressed"]

DEFAULT_WINDOW_SIZE = 5
DEFAULT_MAX_BYTES = 768 * 1024
EVERYONE = "all"

# They would end a name within [NEXT: …] or [DROP: …], or begin something else there.
NOT_IN_NAMES = "[]［］,，、&＆|｜!！:：\n\r`"


class Limits(Struct, frozen=True, kw_only=True):
    """When a conversation pauses until a person says that it may go on."""

    turns_per_message: int = 20
    """Agent turns that one message of a person may cause."""
    back_and_forth: int = 6
    """Turns in a row between the same two agents."""
    identical_replies: int = 3
    """Nearly the same reply in a row from one agent."""
    minutes: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None


class Member(Struct, frozen=True, kw_only=True):
    """A person or an agent."""

    name: str
    type: MemberType
    display_name: str = ""
    role: str = ""
    color: str = ""
    agent: str = ""
    """The agent type of a known CLI."""
    command: tuple[str, ...] = ()
    """Any other program."""
    model: str | None = None
    cwd: str = "."
    """Relative to the folder of the team file."""
    system_instruction: str = ""
    instruction_file: str | None = None
    """None: the CLI's usual one, if it is there. Empty: none at all."""
    arguments: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """Names of variables to pass on; never values, which do not belong in a file."""
    permissions: Permission = "read-only"
    window: int = DEFAULT_WINDOW_SIZE
    visibility: Visibility = "all"
    max_bytes: int = DEFAULT_MAX_BYTES
    idle_timeout: float = 600.0
    """Seconds without a word. May be above total_timeout if the team file gives only one of them; whoever waits takes
    the smaller one."""
    total_timeout: float = 3600.0
    may_address: tuple[str, ...] | None = None
    """Whom it may hand over to; None means everyone."""
    may_set_task: bool = False


class Team(Struct, frozen=True, kw_only=True):
    """Everyone in a conversation, and the rules they share."""

    name: str
    members: tuple[Member, ...]
    lead: str
    """The agent that answers a person who names nobody."""
    task: str | None = None
    instruction_file: str | None = None
    hand_over_note: bool | str = True
    """Whether agents are told who is in the team and how to hand over; a text replaces the note."""
    limits: Limits = Limits()
    outside_files: bool = False
    """Whether instruction files may lie outside the folder of the team file."""

    def member(self, name: str) -> Member:
        """Return a member by its exact name."""
        return next(member for member in self.members if member.name == name)

    @property
    def people(self) -> tuple[Member, ...]:
        """The members who are human."""
        return tuple(member for member in self.members if member.type == "human")

    @property
    def agents(self) -> tuple[Member, ...]:
        """The members who are programs."""
        return tuple(member for member in self.members if member.type == "ai")


def read_team(text: str) -> Team:
    """Return the team that a team.toml describes, or raise InvalidTeam with everything that is wrong with it."""
    team, problems = examine_team(text)
    if team is None or problems:
        raise InvalidTeam(problems)
    return team


def examine_team(text: str) -> tuple[Team | None, tuple[TeamProblem, ...]]:
    """Return everything that is wrong with a team.toml, and the team as far as it can be read, to look for more."""
    text = text.removeprefix("\ufeff")
    try:
        document = tomllib.loads(text)
    # A plain ValueError: a number of more digits than Python reads.
    except (ValueError, RecursionError) as error:
        said = re.search(r"at line (\d+)", str(error))
        line = int(said[1]) if said else text.count("\n") + 1
        return None, (TeamProblem(f"this is no valid TOML: {error}", line=line),)
    reader = _Reader(document, TomlLines(text))
    team = reader.team()
    return team, tuple(sorted(reader.problems, key=lambda problem: problem.line or 0))


class _Kind(Struct, frozen=True):
    """What a value must be, in words, and how to read it; the function raises ValueError for anything else."""

    words: str
    read: Callable[[Any], Any]
    may_be_secret: bool = False
    """Whether a wrong value is not repeated: somebody may have written a key where its name belongs."""


def _need(condition: bool) -> None:
    if not condition:
        raise ValueError


def _read_text(value: Any) -> str:
    # The system ends arguments and paths at a NUL.
    _need(isinstance(value, str) and bool(value.strip()) and "\0" not in value)
    return str(value)


def _read_texts(value: Any) -> tuple[str, ...]:
    _need(isinstance(value, list))
    return tuple(_read_text(item) for item in value)


def _read_command(value: Any) -> tuple[str, ...]:
    _need(bool(value))
    return _read_texts(value)


def _read_variables(value: Any) -> tuple[str, ...]:
    names = _read_texts(value)
    _need(all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in names))
    return names


def _read_paragraphs(value: Any) -> str:
    return "\n\n".join(_read_texts(value)) if isinstance(value, list) else _read_text(value)


def _read_file(value: Any) -> str:
    return "" if value is False else _read_text(value)


def _read_flag(value: Any) -> bool:
    _need(isinstance(value, bool))
    return bool(value)


def _read_note(value: Any) -> bool | str:
    return value if isinstance(value, bool) else _read_text(value)


def _whole(least: int) -> _Kind:
    def read(value: Any) -> int:
        _need(isinstance(value, int) and not isinstance(value, bool) and value >= least)
        return int(value)

    return _Kind(f"a whole number of at least {least}", read)


def _read_positive(value: Any) -> float:
    _need(isinstance(value, int | float) and not isinstance(value, bool) and value > 0)
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError from error
    _need(math.isfinite(number))
    return number


def _one_of(*choices: str) -> _Kind:
    def read(value: Any) -> str:
        _need(value in choices)
        return str(value)

    return _Kind(" or ".join(f'"{choice}"' for choice in choices), read)


_TEXT = _Kind("a text", _read_text)
_TEXTS = _Kind("a list of texts", _read_texts)
_PARAGRAPHS = _Kind("a text or a list of texts", _read_paragraphs)
_FILE = _Kind("the name of a file, or false", _read_file)
_FLAG = _Kind("true or false", _read_flag)
_SECONDS = _Kind("a number of seconds above 0", _read_positive)
_NUMBER = _Kind("a number above 0", _read_positive)

TEAM_KEYS = {
    "name": _TEXT,
    "lead": _TEXT,
    "task": _TEXT,
    "instruction_file": _FILE,
    "hand_over_note": _Kind("true, false, or the text to use instead", _read_note),
    "outside_files": _FLAG,
}
LIMIT_KEYS = {
    "turns_per_message": _whole(1),
    "back_and_forth": _whole(1),
    "identical_replies": _whole(2),
    "minutes": _NUMBER,
    "tokens": _whole(1),
    "cost_usd": _NUMBER,
}
PERSON_KEYS = {
    "name": _TEXT,
    "type": _one_of("human", "ai"),
    "display_name": _TEXT,
    "role": _TEXT,
    "color": _one_of("red", "green", "yellow", "blue", "magenta", "cyan", "white"),
}
AGENT_KEYS = PERSON_KEYS | {
    "agent": _TEXT,
    "command": _Kind("a list of texts, the first a program", _read_command),
    "model": _TEXT,
    "cwd": _TEXT,
    "system_instruction": _PARAGRAPHS,
    "instruction_file": _FILE,
    "arguments": _TEXTS,
    "env": _Kind("a list of names of variables, without values", _read_variables, may_be_secret=True),
    "permissions": _one_of("read-only", "edit", "full"),
    "window": _whole(0),
    "visibility": _one_of("all", "addressed"),
    "max_bytes": _whole(1),
    "idle_timeout": _SECONDS,
    "total_timeout": _SECONDS,
    "may_address": _TEXTS,
    "may_set_task": _FLAG,
}

Path = tuple[str | int, ...]


class _Reader:
    """Reads a document and gathers every problem on the way."""

    def __init__(self, document: Mapping[str, Any], lines: TomlLines) -> None:
        self._document = document
        self._lines = lines
        self.problems: list[TeamProblem] = []

    def team(self) -> Team:
        """Return the team; it is of use only if there are no problems."""
        tables = {"limits": dict, "member": list}
        values = self._values(self._document, TEAM_KEYS, (), skip=tables)
        for name, kind in tables.items():
            if not isinstance(self._document.get(name, kind()), kind):
                self._problem((name,), f"must be {'a table [limits]' if kind is dict else 'tables [[member]]'}")
        limits = self._document.get("limits", {})
        members = tuple(self._members())
        team = Team(
            **{"name": "team", "lead": next((m.name for m in members if m.type == "ai"), ""), **values},
            members=members,
            limits=Limits(**self._values(limits, LIMIT_KEYS, ("limits",))) if isinstance(limits, dict) else Limits(),
        )
        self._check_people(team)
        self._check_names(team)
        return team

    def _members(self) -> Iterator[Member]:
        tables = self._document.get("member", [])
        for index, table in enumerate(tables if isinstance(tables, list) else []):
            path: Path = ("member", index)
            if not isinstance(table, dict):
                self._problem(path, "must be a table [[member]]")
                continue
            runs = "agent" in table or "command" in table
            is_agent = runs or table.get("type") == "ai"
            values = self._values(table, AGENT_KEYS if is_agent else PERSON_KEYS, path, others=AGENT_KEYS)
            if "name" not in table:
                self._problem(path, "has no name")
            if is_agent and ("agent" in table) == ("command" in table):
                self._problem(path, 'needs either agent = "claude" (or another CLI) or command = ["program"]')
            if runs and table.get("type") == "human":
                self._problem((*path, "type"), "a member with an agent or a command is not human")
            self._check_timeouts(values, path)
            yield Member(**{"name": f"member {index + 1}", **values, "type": "ai" if is_agent else "human"})

    def _values(
        self,
        table: Mapping[str, Any],
        keys: Mapping[str, _Kind],
        path: Path,
        *,
        others: Mapping[str, _Kind] | None = None,
        skip: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return what a table says, read; an unknown key or a wrong value is a problem."""
        values = {}
        for key, value in table.items():
            if key in (skip or {}):
                continue
            if key not in keys:
                self._unknown_key((*path, key), keys, others or {})
                continue
            try:
                values[key] = keys[key].read(value)
            except ValueError:
                instead = "" if keys[key].may_be_secret else f", not {_shown(value)}"
                self._problem((*path, key), f"must be {keys[key].words}{instead}")
        return values

    def _unknown_key(self, path: Path, keys: Mapping[str, _Kind], others: Mapping[str, _Kind]) -> None:
        key = str(path[-1])
        if key in others:
            self._problem(path, "is only for members with an agent or a command")
        else:
            self._problem(path, f"there is no such key.{_perhaps(key, keys)}")

    def _check_people(self, team: Team) -> None:
        if not team.agents:
            self._problem((), 'nobody in the team is an agent. Add a [[member]] with agent = "claude"')
        if not team.people:
            self._problem((), 'nobody in the team is a person. Add a [[member]] with only a name = "you"')

    def _check_timeouts(self, values: Mapping[str, Any], path: Path) -> None:
        idle, total = values.get("idle_timeout"), values.get("total_timeout")
        if idle is not None and total is not None and total < idle:
            self._problem(
                (*path, "total_timeout"),
                f"{total:g} is less than the idle_timeout of {idle:g}, which would never count. Raise it, or leave out "
                "idle_timeout",
            )

    def _check_names(self, team: Team) -> None:
        owners: dict[str, tuple[str | int, str]] = {}
        for index, member in enumerate(team.members):
            path: Path = ("member", index, "name")
            if not all(map(_may_be_in_a_name, member.name)) or normalized(member.name) in ("", EVERYONE):
                self._problem(path, f"{_shown(member.name)} cannot be a name in [NEXT: …]")
            elif member.name != member.name.strip():
                self._problem(path, f"{_shown(member.name)} begins or ends with white space")
            self._check_is_free(path, member.name, owners)
            for name in member.may_address or ():
                self._check_reference(("member", index, "may_address"), name, [m.name for m in team.members])
        for index, member in enumerate(team.members):
            self._check_is_free(("member", index, "display_name"), member.display_name, owners)
        if "lead" in self._document and isinstance(team.lead, str):
            self._check_reference(("lead",), team.lead, [agent.name for agent in team.agents])

    def _check_is_free(self, path: Path, name: str, owners: dict[str, tuple[str | int, str]]) -> None:
        """Give a name to a member, unless [NEXT: …] would not know who is meant. Nobody is meant by decoration."""
        key, member = normalized(name), path[1]
        owner, spelling = owners.setdefault(key, (member, name))
        if key and owner != member:
            self._problem(path, f"{_shown(name)} and {_shown(spelling)} would be the same name in [NEXT: …]")
        elif key == EVERYONE and path[-1] == "display_name":
            self._problem(path, f"{_shown(name)} means everyone in [DROP: …]")

    def _check_reference(self, path: Path, name: str, known: list[str]) -> None:
        if name not in known:
            kind = "agent" if path[0] == "lead" else "member"
            self._problem(path, f"there is no such {kind}: {_shown(name)}.{_perhaps(name, known)}")

    def _problem(self, path: Path, text: str) -> None:
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
        self.problems.append(TeamProblem(text, line=self._lines.line_of(path), key=key))


def _may_be_in_a_name(character: str) -> bool:
    return character not in NOT_IN_NAMES and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _perhaps(word: str, known: Any) -> str:
    close = nearest(word, known)
    return f" Did you mean {' or '.join(close)}?" if close else f" Known are: {', '.join(known)}." if known else ""


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
