"""Work: what an agent did in a turn beside answering: its thoughts and its tools, as data that any widget can show."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.tui.text import one_line, shown
from bullpen.turn_events import Event, Notice, Thinking, TodoList, ToolFinished, ToolStarted
from bullpen.view.tool_summary import asked_of

# What is kept of each step; the record of the turn has all of it.
MOST_KEPT = 50_000
MOST_STEPS = 500


class Step(Struct, kw_only=True):
    """One thing that an agent did, or thought."""

    id: str
    name: str
    input: dict[str, Any] = {}
    text: str = ""
    """What it thought, what the tool answered, what the notice says."""
    is_done: bool = False
    failed: bool = False
    changed_files: tuple[str, ...] = ()

    @property
    def is_tool(self) -> bool:
        """Whether it is the use of a tool."""
        return self.name not in ("thinking", "notice", "todo")

    @property
    def summary(self) -> str:
        """The step on one line."""
        if not self.is_tool:
            return one_line(self.text, 100)
        return one_line(asked_of(self.input), 100)

    @property
    def input_text(self) -> str:
        """What the tool was given, for people."""
        match self.input:
            case {"command": str(command), **rest} if not set(rest) - {"description", "timeout"}:
                return shown(f"$ {command}")
            case empty if not empty:
                return ""
            case _:
                formatted = msgspec.json.format(msgspec.json.encode(self.input, enc_hook=str), indent=2)
                return shown(formatted.decode())


class Work:
    """The steps of one turn, the latest last."""

    def __init__(self, steps: Iterable[Event] = (), *, began_at: int = 0) -> None:
        self.steps: list[Step] = []
        self.seconds = 0.0
        self._began_at = began_at
        self._made = 0
        for event in steps:
            self.take(event)

    def take(self, event: Event) -> Step | None:
        """Take an event; return the step that is new or has changed."""
        match event:
            case Thinking(text=text):
                return self._add_to("thinking", text)
            case ToolStarted():
                # Who comes late learns it twice: from what was done so far, and from the news of it.
                return self._find(event.id) or self._add(
                    Step(id=event.id, name=one_line(event.name, 40), input=event.input)
                )
            case ToolFinished():
                return self._finish(event)
            case Notice(kind="retry" | "warning"):
                return self._add(Step(id="", name="notice", text=event.text[:MOST_KEPT], is_done=True))
            case TodoList():
                lines = [f"{'☑' if item.done else '☐'} {item.text}" for item in event.items]
                return self._add(Step(id="", name="todo", text="\n".join(lines)[:MOST_KEPT], is_done=True))
            case _:
                return None

    def end(self, at: int) -> None:
        """Remember how long it took."""
        self.seconds = (at - self._began_at) / 1000

    @property
    def tools(self) -> int:
        """How many tools it used."""
        return sum(step.is_tool for step in self.steps)

    @property
    def changed_files(self) -> tuple[str, ...]:
        """Every file that it changed, once."""
        return tuple(dict.fromkeys(path for step in self.steps for path in step.changed_files))

    @property
    def summary(self) -> str:
        """All of it on one line."""
        thoughts = any(step.name == "thinking" for step in self.steps)
        failed = sum(step.failed for step in self.steps)
        files = len(self.changed_files)
        parts = [
            "thinking" if thoughts else "",
            f"{self.tools} tool{'s' * (self.tools != 1)}" if self.tools else "",
            f"{failed} failed" if failed else "",
            f"{files} file{'s' * (files != 1)} changed" if files else "",
        ]
        return " · ".join(part for part in parts if part) or "notes"

    def _add_to(self, name: str, text: str) -> Step:
        """Let pieces of one thought become one step."""
        last = self.steps[-1] if self.steps else None
        if last is None or last.name != name:
            return self._add(Step(id="", name=name, text=text[:MOST_KEPT], is_done=True))
        if len(last.text) < MOST_KEPT:
            last.text += text[:MOST_KEPT]
        return last

    def _add(self, step: Step) -> Step:
        self._made += 1
        step.id = step.id or f"#{self._made}"
        self.steps.append(step)
        if len(self.steps) > MOST_STEPS:
            del self.steps[: MOST_STEPS // 2]
        return step

    def _find(self, step_id: str) -> Step | None:
        return next((step for step in reversed(self.steps) if step.id == step_id), None)

    def _finish(self, event: ToolFinished) -> Step:
        step = self._find(event.id) or self._add(Step(id=event.id, name="tool"))
        step.text = event.output[:MOST_KEPT]
        step.is_done = True
        step.failed = event.failed
        step.changed_files = event.changed_files
        return step
