"""What an agent did in a turn, step by step: while it runs from its events, later from what its program wrote."""

import shlex
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from bullpen.store.base import TurnRecord
from bullpen.turn_events import Event, Notice, Thinking, TodoList, ToolFinished, ToolStarted
from bullpen.view.replay import recorded_events
from bullpen.view.tool_summary import asked_of

MOST_CHARACTERS = 20_000
"""Of one output that a page shows."""
MOST_ASKED = 200
MOST_STEPS = 500


class Step(Struct, kw_only=True):
    """One thing done."""

    key: str
    kind: str
    """tool, notice, thinking or todo."""
    title: str
    detail: str = ""
    """What it was asked to do, on one line where possible."""
    input: str = ""
    output: str = ""
    is_open: bool = False
    """It has not answered yet."""
    failed: bool = False
    changed_files: tuple[str, ...] = ()
    done: tuple[bool, ...] = ()
    items: tuple[str, ...] = ()


def steps_of(events: Iterable[Event]) -> list[Step]:
    """Return the steps that events add up to, each tool with its answer."""
    steps: dict[str, Step] = {}
    for number, event in enumerate(events):
        step = _updated(event, steps, f"e{number}")
        if step is not None and (step.key in steps or len(steps) < MOST_STEPS):
            steps[step.key] = step
    return list(steps.values())


def recorded_steps(record: TurnRecord) -> list[Step]:
    """Return what an agent did in a turn that has ended, read again from what its program wrote. Not for the loop."""
    return steps_of(_joined(recorded_events(record)))


def _joined(events: Iterable[Event]) -> Iterable[Event]:
    """Yield the events with thoughts in one piece."""
    thought = ""
    for event in events:
        if isinstance(event, Thinking):
            thought += event.text
        elif isinstance(event, ToolStarted | ToolFinished | TodoList | Notice):
            if thought:
                yield Thinking(thought)
                thought = ""
            yield event
    if thought:
        yield Thinking(thought)


def _updated(event: Event, steps: dict[str, Step], key: str) -> Step | None:
    match event:
        case ToolStarted():
            asked = " ".join(asked_of(event.input).split())[:MOST_ASKED]
            return Step(
                key=f"tool-{event.id}",
                kind="tool",
                title=event.name,
                detail=asked,
                input=_whole(event.input),
                is_open=True,
            )
        case ToolFinished():
            step = steps.get(f"tool-{event.id}") or Step(key=f"tool-{event.id}", kind="tool", title="tool")
            step.output = shortened(event.output)
            step.is_open, step.failed, step.changed_files = False, event.failed, event.changed_files
            return step
        case TodoList():
            items = tuple(item.text for item in event.items)
            return Step(
                key="todo", kind="todo", title="Plan", items=items, done=tuple(item.done for item in event.items)
            )
        case Notice():
            return Step(key=key, kind="notice", title=event.kind, detail=shortened(event.text, 500))
        case Thinking():
            return Step(key=key, kind="thinking", title="Thinking", output=shortened(event.text))
        case _:
            return None


def _whole(given: dict[str, Any]) -> str:
    """Return everything that a tool was given."""
    return shortened("\n".join(f"{name}: {_text(value)}" for name, value in given.items()))


def _text(value: object) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return shlex.join(value)
    return value if isinstance(value, str) else repr(value)


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the beginning of a long text, and how much more there is."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters"
