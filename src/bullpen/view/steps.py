"""Steps: what an agent did in a turn besides answering: its tools, its plan, its thoughts, and notices."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.conversation.recorded_events import recorded_events
from bullpen.store.base import Store, TurnRecord
from bullpen.text.asked_words import few
from bullpen.text.clean import one_line
from bullpen.text.numbers import clock, counted
from bullpen.text.tool_words import asked_of
from bullpen.turn_events import Event, Notice, Thinking, TodoItem, TodoList, ToolFinished, ToolStarted
from bullpen.view.diff import FileDiff, plus_minus
from bullpen.view.edits import edits_of

MOST_STEPS = 500
MOST_CHARACTERS = 20_000
"""Of one input or output that is kept; the record of the turn has all of it."""
MOST_SUMMARY = 200
# Tools that only change the plan, which is a step of its own.
PLAN_TOOLS = frozenset({"TodoWrite", "write_todos", "todo_write", "update_plan"})

Kind = Literal["tool", "plan", "thinking", "notice"]


class Step(Struct, kw_only=True):
    """One thing that an agent did or thought."""

    key: str
    """Unique within the turn."""
    kind: Kind
    title: str
    """The name of the tool, or the kind of step."""
    summary: str = ""
    """What it was about, on one line."""
    input: str = ""
    """Everything that the tool was given, unless it edits files."""
    edits: tuple[FileDiff, ...] = ()
    """What it is to change in which files."""
    output: str = ""
    """What the tool answered, what was thought, what the notice says."""
    is_open: bool = False
    """The tool has not answered yet."""
    failed: bool = False
    changed_files: tuple[str, ...] = ()
    items: tuple[TodoItem, ...] = ()
    """The plan."""
    attempts: int = 0
    """Of retries, how many there were in a row."""

    @property
    def result(self) -> str:
        """What came of a tool, on one line: the first line of its answer, and how many more there are."""
        lines = [line for line in self.output.strip().splitlines() if line.strip()]
        said = lines[0].strip()[:MOST_SUMMARY] if lines else ""
        more = f" (+{counted(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
        changed = f"changed {', '.join(self.changed_files)}" if self.changed_files else ""
        return " · ".join(part for part in (said + more, changed) if part) or ("failed" if self.failed else "done")


class Steps:
    """The steps of one turn, in order, gathered from its events."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._steps: dict[str, Step] = {}
        self._plan_calls: dict[str, ToolStarted] = {}
        """Calls that only change the plan. They are steps only if they fail."""
        self._made = 0
        for event in events:
            self.add(event)

    def __iter__(self) -> Iterator[Step]:
        """Yield every step, the latest last."""
        return iter(self._steps.values())

    def __len__(self) -> int:
        """Return how many steps there are."""
        return len(self._steps)

    def add(self, event: Event) -> Step | None:
        """Take an event; return the step that is new or has changed, if it belongs to one."""
        match event:
            case ToolStarted(name=name) if name in PLAN_TOOLS:
                self._plan_calls[event.id] = event
                return None
            case ToolStarted():
                # A viewer who comes late learns of it twice: from the steps so far, and from its event.
                return self._steps.get(f"tool-{event.id}") or self._keep(_tool(event))
            case ToolFinished():
                return self._finish(event)
            case TodoList():
                return self._plan(event)
            case Notice(kind="retry"):
                return self._retry(event)
            case Notice(kind="warning" | "session"):
                text = shortened(event.text, 2_000)
                return self._keep(Step(key=self._new_key(), kind="notice", title=event.kind, output=text))
            case Thinking():
                return self._think(event.text)
            case _:
                return None

    @property
    def changed_files(self) -> tuple[str, ...]:
        """Every file that a tool says it changed, once."""
        return tuple(dict.fromkeys(path for step in self for path in step.changed_files))

    @property
    def summary(self) -> str:
        """All of it on one line."""
        return steps_summary(self)

    def _finish(self, event: ToolFinished) -> Step | None:
        plan_call = self._plan_calls.pop(event.id, None)
        if plan_call is not None and not event.failed:
            return None
        step = self._steps.get(f"tool-{event.id}")
        if step is None:
            unknown = ToolStarted(id=event.id, name="tool")
            step = self._keep(_tool(plan_call or unknown))
        step.output = shortened(event.output)
        step.is_open, step.failed, step.changed_files = False, event.failed, event.changed_files
        return step

    def _plan(self, event: TodoList) -> Step:
        done = sum(item.done for item in event.items)
        step = self._steps.get("plan") or self._keep(Step(key="plan", kind="plan", title="plan"))
        step.items, step.summary = event.items, f"{done} of {len(event.items)} done"
        step.output = "\n".join(f"{'☑' if item.done else '☐'} {item.text}" for item in event.items)
        return step

    def _think(self, text: str) -> Step:
        """Add to the thought that is the last step, or begin one."""
        last = next(reversed(self._steps.values()), None)
        if last is None or last.kind != "thinking":
            last = self._keep(Step(key=self._new_key(), kind="thinking", title="thinking"))
        if len(last.output) < MOST_CHARACTERS:
            last.output += text[: MOST_CHARACTERS - len(last.output)]
            last.summary = one_line(last.output[: 2 * MOST_SUMMARY]).strip()[:MOST_SUMMARY]
        return last

    def _retry(self, event: Notice) -> Step:
        """Count in the last step if that is a retry, too: a CLI without a connection may try forever."""
        last = next(reversed(self._steps.values()), None)
        if event.since:
            last = self._steps.get(f"retry-{event.since}")
        if last is None or last.title != event.kind:
            key = f"retry-{event.since}" if event.since else self._new_key()
            last = self._keep(Step(key=key, kind="notice", title=event.kind))
        last.attempts = max(event.attempts, last.attempts + 1)
        last.output = shortened(retry_words(replace(event, attempts=last.attempts)), 2_000)
        return last

    def _keep(self, step: Step) -> Step:
        self._steps[step.key] = step
        if len(self._steps) > MOST_STEPS:
            del self._steps[next(iter(self._steps))]
        return step

    def _new_key(self) -> str:
        self._made += 1
        return f"step-{self._made}"


def steps_summary(steps: Iterable[Step]) -> str:
    """Return steps on one line."""
    known = list(steps)
    tools, failed = sum(step.kind == "tool" for step in known), sum(step.failed for step in known)
    changed = {path for step in known for path in step.changed_files}
    parts = [
        "thinking" if any(step.kind == "thinking" for step in known) else "",
        counted(tools, "tool") if tools else "",
        f"{failed} failed" if failed else "",
        f"{counted(len(changed), 'file')} changed" if changed else "",
    ]
    return " · ".join(part for part in parts if part) or "notes"


def retry_words(event: Notice) -> str:
    """Return retries in a row in one line: how many, since when, and the last reason."""
    if event.attempts < 2:
        return event.text
    since = f" since {clock(event.since)}" if event.since else ""
    return f"{event.attempts:,} attempts{since}: {event.text}"


def recorded_steps(record: TurnRecord) -> Steps:
    """Return what an agent did in a turn that has ended, read again from its stream. Slow: not for an event loop."""
    return Steps(recorded_events(record))


def turn_record(store: Store, conversation_id: str, turn_id: str) -> TurnRecord | None:
    """Return what is recorded about a turn, or None if it has not started or still runs."""
    turn = store.turn(conversation_id, turn_id)
    return None if turn.ended_at is None else store.record(conversation_id, turn_id)


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the beginning of a long text, and how much more there is."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters"


def _tool(event: ToolStarted) -> Step:
    edits = edits_of(event.name, event.input)
    lines = plus_minus(sum(file.added for file in edits), sum(file.removed for file in edits))
    about = few(asked_of(event.input), MOST_SUMMARY)
    return Step(
        key=f"tool-{event.id}",
        kind="tool",
        title=one_line(event.name),
        summary=f"{_edited(edits) or about} {lines}".rstrip(),
        input="" if edits else shortened(_input_text(event.input)),
        edits=edits,
        is_open=True,
    )


def _edited(edits: Sequence[FileDiff]) -> str:
    """Return which files a tool edits, on one line."""
    return " ".join(", ".join(file.path[:MOST_SUMMARY] for file in edits[:5]).split())[:MOST_SUMMARY]


def _input_text(given: dict[str, Any]) -> str:
    """Return everything that a tool was given, as people would write it."""
    match given:
        case {"command": str(command), **rest} if not set(rest) - {"description", "timeout"}:
            return f"$ {command}"
        case _:
            return "\n".join(f"{name}: {_value_text(value)}" for name, value in given.items())


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return shlex.join(value)
    return msgspec.json.encode(value, enc_hook=str).decode()
