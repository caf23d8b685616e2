"""What an agent's turn can say: one vocabulary for every CLI. Exactly one Finished or Failed ends a turn."""

from typing import Any, Literal

from msgspec import Struct

FailureKind = Literal[
    "not_installed",
    "not_signed_in",
    "quota",
    "overloaded",
    "not_prepared",
    "prompt_too_long",
    "turn_limit",
    "permission_refused",
    "crashed",
    "timed_out",
    "cancelled",
    "protocol_broken",
]

NoticeKind = Literal["retry", "warning", "unknown", "noise"]


class Started(Struct, frozen=True, kw_only=True, tag="started", tag_field="event"):
    """The CLI is up."""

    session_id: str | None = None
    model: str | None = None
    cli_version: str | None = None


class TextDelta(Struct, frozen=True, tag="text", tag_field="event", gc=False):
    """A piece of what the agent says to the team."""

    text: str


class Thinking(Struct, frozen=True, tag="thinking", tag_field="event", gc=False):
    """A piece of what the agent thinks to itself."""

    text: str


class ToolStarted(Struct, frozen=True, kw_only=True, tag="tool_started", tag_field="event"):
    """The agent uses a tool."""

    id: str
    name: str
    input: dict[str, Any] = {}


class ToolFinished(Struct, frozen=True, kw_only=True, tag="tool_finished", tag_field="event"):
    """A tool has answered."""

    id: str
    output: str = ""
    failed: bool = False
    changed_files: tuple[str, ...] = ()


class TodoItem(Struct, frozen=True):
    """One thing on the agent's list."""

    text: str
    done: bool


class TodoList(Struct, frozen=True, tag="todo", tag_field="event"):
    """The agent's list as it is now, whole."""

    items: tuple[TodoItem, ...]


class Usage(Struct, frozen=True, kw_only=True, tag="usage", tag_field="event"):
    """What the turn took, as the CLI reports it: the last one counts."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    """None where the CLI does not say."""


class Notice(Struct, frozen=True, kw_only=True, tag="notice", tag_field="event"):
    """Something people may want to know: a retry, a warning, an event nobody knows, a line that is no event."""

    kind: NoticeKind
    text: str


class Finished(Struct, frozen=True, tag="finished", tag_field="event"):
    """The turn succeeded, and this is the agent's final answer, whole."""

    text: str


class Failed(Struct, frozen=True, kw_only=True, tag="failed", tag_field="event"):
    """The turn failed."""

    kind: FailureKind
    message: str
    """What happened, in a sentence."""
    hint: str = ""
    """What to do next."""
    partial_text: str = ""
    """What the agent had said by then. It is kept for people, and is no message."""
    exit_code: int | None = None
    stderr_tail: str = ""
    reset_at: str | None = None
    """When a quota comes back, as the vendor wrote it."""


Event = Started | TextDelta | Thinking | ToolStarted | ToolFinished | TodoList | Usage | Notice | Finished | Failed
