"""Records of the Agent Client Protocol: tool calls, questions, plans and counts, as the events of every other CLI."""

import os.path
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bullpen.acp_protocol import ASKED_KINDS, QUESTION
from bullpen.agents.common_records import count, todo_list
from bullpen.turn_events import ApprovalAsked, TodoList, ToolFinished, ToolStarted, Usage

FOLDERS = ("cwd", "dir_path", "directory", "workdir")
"""What the CLIs call the folder that a command is to run in."""
SHOWN = frozenset({"command", "description", *FOLDERS})
"""What is given with a command and shown as the command, its folder, or why."""
EDITOR_WORDS = frozenset({"create", "insert", "str_replace", "undo_edit", "view"})
"""What a tool that reads and writes files may call a command."""
CONTEXT_LINES = 3
_NAME = re.compile(r"[a-z][A-Za-z0-9_-]*")
# Gemini tells the folder of a command only in a text for people.
_GEMINI_FOLDER = re.compile(r"\[in ([^\]]+)\](?: \([^\]]*\))?(?: \[background\])?")


class ToolCall(Struct):
    """What is known so far of a call: agents tell it in pieces, and the last piece counts."""

    id: str
    name: str = ""
    """The name of its tool, where agents tell it."""
    label: str = ""
    """What it was called at first: with many agents that is the name of the tool, too."""
    kind: str = ""
    title: str = ""
    titles_are_commands: bool = False
    """Whether its title is its command if nothing else is given."""
    given: dict[str, Any] = {}
    folders: tuple[str, ...] = ()
    """Where it is to run."""
    is_placed: bool = False
    """Whether that was told together with the command."""
    paths: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    """Files of which it has shown a diff."""
    written: tuple[tuple[str, str], ...] = ()
    """These files, with their new texts."""
    diff: str = ""
    text: str = ""
    raw_output: Any = None
    is_started: bool = False
    has_output: bool = False
    """Whether it had a text before it was over."""
    is_question: bool = False
    """Whether the agent says that it only asks something: other teams of bullpen do."""

    def learn(self, told: Mapping[str, Any]) -> None:
        """Add what a record tells."""
        meta = told.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        self.name = _text(meta.get("toolName")) or _text(meta.get("tool_name")) or self.name
        self.is_question = self.is_question or meta.get(QUESTION) is True
        self.kind = _text(told.get("kind")) or self.kind
        self.title = _text(told.get("title")) or self.title
        self.label = self.label or self.title
        given = told.get("rawInput")
        if given and not isinstance(given, dict):
            self.given = {"rawInput": given}
        elif given:
            self.given = given
            folders = tuple(text for name in FOLDERS if (text := _text(given.get(name))))
            self.folders = folders or self.folders
            self.is_placed = self.is_placed or bool(folders and given.get("command"))
        if isinstance(places := told.get("locations"), list):
            self.paths = tuple(_text(place.get("path")) for place in places if isinstance(place, dict)) or self.paths
        if isinstance(content := told.get("content"), list):
            self._learn_content(content)
        self.raw_output = told.get("rawOutput", self.raw_output)

    def _learn_content(self, content: list[Any]) -> None:
        texts: list[str] = []
        diffs: list[tuple[str, str]] = []
        written: list[tuple[str, str]] = []
        for block in content:
            match block:
                case {"type": "content", "content": {"type": "text", "text": str(text)}}:
                    texts.append(text)
                case {"type": "diff", "path": str(path), "newText": str(new)}:
                    diffs.append((path, line_diff(path, block.get("oldText"), new)))
                    written.append((path, new))
        self.text = "\n".join(texts)
        if diffs:
            self.edited = tuple(dict.fromkeys(path for path, _ in diffs))
            self.diff = "".join(diff for _, diff in diffs)
            self.written = tuple(written)

    def started(self) -> ToolStarted:
        """Return that it has been called. Few agents tell the tool's name."""
        self.is_started = True
        name = self.name or (self.label if _NAME.fullmatch(self.label) else self.kind) or "tool"
        return ToolStarted(id=self.id, name=name, input=self.given or self._asked_for())

    def _asked_for(self) -> dict[str, Any]:
        if self.kind == "execute":
            return {"command": self.title}
        paths = self.edited or self.paths
        return {"path": paths[0]} if paths else {"title": self.title} if self.title else {}

    def finished(self, *, failed: bool) -> ToolFinished:
        """Return how it ended."""
        is_edit = ASKED_KINDS.get(self.kind) == "edit"
        changed = self.edited or (self.paths if is_edit else ())
        return ToolFinished(
            id=self.id,
            output=self.text or _output(self.raw_output),
            failed=failed,
            changed_files=() if failed else changed,
        )

    def question(self, question: str, folder: str) -> ApprovalAsked:
        """Return the question whether it may be done."""
        command = self.command
        kind = ASKED_KINDS.get(self.kind, "tool")
        return ApprovalAsked(
            id=question,
            kind="command" if command else kind,
            tool=self.name or self.kind,
            command=command,
            diff=self.diff,
            paths=() if command else tuple(dict.fromkeys((*self.edited, *self.paths))),
            details=self._details(command),
            folder=self._folder_from(folder),
            why=self.text or _text(self.given.get("description")),
        )

    def deed(self, folder: str) -> ApprovalAsked | None:
        """Return what it does as the question that it needs, by any of its signs; None: it needs none."""
        question = self.question("", folder)
        if question.kind in ("command", "edit"):
            return question
        if self.edited:
            return replace(question, kind="edit")
        command = self._other_command
        if not command:
            return None
        return replace(question, kind="command", command=command, paths=(), details=self._details(command))

    def choices(self, options: object) -> dict[str, str] | None:
        """Return the answers of which only a person can choose one, with their ids; None: it asks for a permission."""
        names = dict(_named(options))
        is_permission = self.name or self.kind in ASKED_KINDS or not (self.is_question or len(names) > 1)
        return None if is_permission else names

    def _details(self, command: str) -> dict[str, Any]:
        """Return what else it is given than what is shown as a command or a diff."""
        if not command:
            # A command beside a diff is more than an edit.
            more = {"command": self.given["command"]} if self._other_command else {}
            return more if self.diff else {"title": self.title, **self.given}
        more = {name: value for name, value in self.given.items() if not self._is_shown(name, value, command)}
        is_only_title = not self._given_command and not self._other_command
        if is_only_title and (self.given or not self.titles_are_commands):
            more["title"] = self.title
        return more

    def _is_shown(self, name: str, value: object, command: str) -> bool:
        """Return whether people see what is given as the command, its folder, or why."""
        if name == "command":
            return bool(self._given_command or self._other_command)
        if name == "commands":
            # Its parts, as somebody else took it apart.
            return isinstance(value, list) and all(isinstance(part, str) and part in command for part in value)
        return name in SHOWN and isinstance(value, str)

    def _folder_from(self, start: str) -> str:
        """Return the folder in which it would run; in case of doubt what is told of it, in brackets: no path."""
        told, is_clear = self.folders, True
        if not told and self.kind == "execute" and self.text.startswith("[in "):
            found = _GEMINI_FOLDER.fullmatch(self.text)
            told, is_clear = (found[1] if found else self.text,), found is not None
        paths = [os.path.join(start, one) for one in told or ("",)]  # noqa: PTH118
        # After a link, ".." leads elsewhere than it seems, and not every CLI follows links first.
        plain = {os.path.normpath(path) for path in paths}
        if is_clear and len(plain) == 1 and {*map(os.path.realpath, paths)} == {*map(os.path.realpath, plain)}:
            return plain.pop()
        return f"({' or '.join(told)})"

    @property
    def _other_command(self) -> str:
        """What is called a command of a tool that is not called a shell, and may be one."""
        match self.given.get("command"):
            case str(command) if command not in EDITOR_WORDS:
                return command
            case [*words]:
                return shlex.join(map(str, words))
            case _:
                return ""

    @property
    def command(self) -> str:
        """The whole command, exactly as it would run; empty if it runs none.

        The "command" of any other tool may be anything.
        """
        return (self._given_command or self.title) if self.kind == "execute" else ""

    @property
    def _given_command(self) -> str:
        arguments = self.given.get("args")
        more = [shlex.join(map(str, arguments))] if isinstance(arguments, list) and arguments else []
        match self.given.get("command"):
            case str(command) if command and self.kind == "execute":
                return " ".join([command, *more])
            case [*words] if words and self.kind == "execute":
                return " ".join([shlex.join(map(str, words)), *more])
            case _:
                return ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _output(raw: object) -> str:
    match raw:
        case str(text) | {"output": str(text)} | {"error": str(text)}:
            return text
        case _:
            return ""


def line_diff(path: str, old: object, new: str) -> str:
    """Return all that changes between two texts, in one piece: nothing of it may be left out, however long it is."""
    before, after = (old if isinstance(old, str) else "").splitlines(), new.splitlines()
    same = _same(before, after)
    same_at_end = _same(before[same:][::-1], after[same:][::-1])
    until, until_after = len(before) - same_at_end, len(after) - same_at_end
    lines = [
        *(f" {line}" for line in before[max(0, same - CONTEXT_LINES) : same]),
        *(f"-{line}" for line in before[same:until]),
        *(f"+{line}" for line in after[same:until_after]),
        *(f" {line}" for line in before[until : until + CONTEXT_LINES]),
    ]
    first = max(0, same - CONTEXT_LINES) + 1
    old_count, new_count = (sum(line[0] in (" ", sign) for line in lines) for sign in "-+")
    head = [f"--- {path if old else '/dev/null'}", f"+++ {path}"]
    return "\n".join([*head, f"@@ -{first if old else 0},{old_count} +{first},{new_count} @@", *lines]) + "\n"


def _same(some: Iterable[str], others: Iterable[str]) -> int:
    """Return how many lines are the same at the beginning."""
    number = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        number += 1
    return number


def plan(entries: Iterable[Any]) -> TodoList:
    """Return an agent's plan."""
    return todo_list(entries, text="content")


class Counts(Struct):
    """What a turn has used so far. Some agents count each request, some each prompt."""

    of_requests: tuple[int, int, int] = (0, 0, 0)
    of_prompts: tuple[int, int, int] = (0, 0, 0)
    context_window: int = 0
    cost_usd: float | None = None
    adds_up: bool = False
    """Whether what is told for a prompt includes all prompts before it."""

    def add_request(self, told: object) -> None:
        """Add what one request to the model used."""
        self.of_requests = _sum(self.of_requests, _counts(told))

    def add_prompt(self, result: Mapping[str, Any]) -> None:
        """Add what the answer to a prompt says of its use."""
        told = _counts_of_prompt(result)
        self.of_prompts = told if self.adds_up and any(told) else _sum(self.of_prompts, told)

    def learn(self, update: Mapping[str, Any]) -> None:
        """Note how much the model can take in, and what the session has cost."""
        self.context_window = count(update.get("size"))
        match update.get("cost"):
            case {"amount": int() | float() as amount, "currency": "USD"} if amount > 0:
                self.cost_usd = float(amount)

    @property
    def usage(self) -> Usage:
        """All of it."""
        taken, given, cached = self.of_requests if any(self.of_requests) else self.of_prompts
        return Usage(
            input_tokens=taken,
            output_tokens=given,
            cached_tokens=cached,
            cost_usd=self.cost_usd,
            context_window=self.context_window,
        )


def _counts_of_prompt(result: Mapping[str, Any]) -> tuple[int, int, int]:
    match result:
        case {"usage": dict(told)}:
            return _counts(told)
        case {"_meta": {"quota": {"token_count": {"input_tokens": taken, "output_tokens": given}}}}:
            return count(taken), count(given), 0
        case _:
            return 0, 0, 0


def _counts(told: object) -> tuple[int, int, int]:
    told = told if isinstance(told, dict) else {}
    taken, given, cached = (count(told.get(name)) for name in ("inputTokens", "outputTokens", "cachedReadTokens"))
    # Some count what was cached as taken in, too, and some do not: the total tells.
    is_apart = count(told.get("totalTokens")) >= taken + given + cached
    return taken + (cached if is_apart else 0), given, cached


def _sum(some: tuple[int, int, int], others: tuple[int, int, int]) -> tuple[int, int, int]:
    return some[0] + others[0], some[1] + others[1], some[2] + others[2]


def offered(options: object) -> Iterator[tuple[str, str]]:
    """Yield the kind and the id of each answer that an agent offers."""
    for option in options if isinstance(options, list) else ():
        match option:
            case {"kind": str(kind), "optionId": str(option_id)}:
                yield kind, option_id


def _named(options: object) -> Iterator[tuple[str, str]]:
    for option in options if isinstance(options, list) else ():
        match option:
            case {"kind": "allow_once", "optionId": str(option_id), "name": str(name)}:
                yield name, option_id
