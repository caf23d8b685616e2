"""Records of the Agent Client Protocol: tool calls, questions, plans and counts, as the events of every other CLI."""

import os.path
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from bullpen.agents.common_records import count, todo_list
from bullpen.turn_events import ApprovalAsked, AskedKind, TodoList, ToolFinished, ToolStarted, Usage

ASKED_KINDS: Mapping[str, AskedKind] = {
    "execute": "command",
    "edit": "edit",
    "delete": "edit",
    "move": "edit",
    "fetch": "network",
}
"""What is asked for, by the kind of the tool; any other kind is a tool like any other."""
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
    given: dict[str, Any] = {}
    paths: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    """Files of which it has shown a diff."""
    diff: str = ""
    text: str = ""
    raw_output: Any = None
    is_started: bool = False

    def learn(self, told: Mapping[str, Any]) -> None:
        """Add what a record tells."""
        meta = told.get("_meta")
        self.name = (_text(meta.get("toolName")) if isinstance(meta, dict) else "") or self.name
        self.kind = _text(told.get("kind")) or self.kind
        self.title = _text(told.get("title")) or self.title
        self.label = self.label or self.title
        if isinstance(given := told.get("rawInput"), dict) and given:
            self.given = given
        if isinstance(places := told.get("locations"), list):
            self.paths = tuple(_text(place.get("path")) for place in places if isinstance(place, dict)) or self.paths
        if isinstance(content := told.get("content"), list):
            self._learn_content(content)
        self.raw_output = told.get("rawOutput", self.raw_output)

    def _learn_content(self, content: list[Any]) -> None:
        texts: list[str] = []
        diffs: list[tuple[str, str]] = []
        for block in content:
            match block:
                case {"type": "content", "content": {"type": "text", "text": str(text)}}:
                    texts.append(text)
                case {"type": "diff", "path": str(path), "newText": str(new)}:
                    diffs.append((path, line_diff(path, block.get("oldText"), new)))
        self.text = "\n".join(texts)
        if diffs:
            self.edited = tuple(dict.fromkeys(path for path, _ in diffs))
            self.diff = "".join(diff for _, diff in diffs)

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
            details={} if command or self.diff else {"title": self.title, **self.given},
            folder=os.path.normpath(os.path.join(folder, self._folder)),  # noqa: PTH118
            why=self.text or _text(self.given.get("description")),
        )

    @property
    def _folder(self) -> str:
        """Where it would run, if that is told."""
        told = _text(self.given.get("cwd")) or _text(self.given.get("directory"))
        if told or self.kind != "execute" or not self.text.startswith("[in "):
            return told
        # In case of doubt with all that is told: it must not be taken for another folder.
        found = _GEMINI_FOLDER.fullmatch(self.text)
        return found[1] if found else self.text

    @property
    def command(self) -> str:
        """The whole command, exactly as it would run; empty if it runs none."""
        if ASKED_KINDS.get(self.kind) == "edit":
            return ""  # an editor's own command
        match self.given.get("command"):
            case str(command) if command:
                return command
            case [*words] if words:
                return shlex.join(map(str, words))
            case _:
                return self.title if self.kind == "execute" else ""


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

    def add_request(self, told: object) -> None:
        """Add what one request to the model used."""
        self.of_requests = _sum(self.of_requests, _counts(told))

    def add_prompt(self, result: Mapping[str, Any]) -> None:
        """Add what the answer to a prompt says of its use."""
        self.of_prompts = _sum(self.of_prompts, _counts_of_prompt(result))

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
    return count(told.get("inputTokens")), count(told.get("outputTokens")), count(told.get("cachedReadTokens"))


def _sum(some: tuple[int, int, int], others: tuple[int, int, int]) -> tuple[int, int, int]:
    return some[0] + others[0], some[1] + others[1], some[2] + others[2]


def offered(options: object) -> Iterator[tuple[str, str]]:
    """Yield the kind and the id of each answer that an agent offers."""
    for option in options if isinstance(options, list) else ():
        match option:
            case {"kind": str(kind), "optionId": str(option_id)}:
                yield kind, option_id
