"""The events of an agent's turn, the same for every CLI. Exactly one Finished or Failed ends a turn."""

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
    "session_lost",
    "crashed",
    "timed_out",
    "cancelled",
    "protocol_broken",
    "worker_lost",
]

AskedKind = Literal["command", "edit", "network", "tool", "question"]
"""What is asked for: to run a command, to change files, to reach the network, to use another tool; or a question."""

NoticeKind = Literal["retry", "warning", "session", "unknown", "noise"]


class Started(Struct, frozen=True, kw_only=True, tag="started", tag_field="event"):
    """The CLI is running."""

    session_id: str | None = None
    model: str | None = None
    cli_version: str | None = None


class TextDelta(Struct, frozen=True, tag="text", tag_field="event", gc=False):
    """A piece of what the agent says to the team."""

    text: str


class Thinking(Struct, frozen=True, tag="thinking", tag_field="event", gc=False):
    """A piece of the agent's thinking."""

    text: str


class ToolStarted(Struct, frozen=True, kw_only=True, tag="tool_started", tag_field="event"):
    """The agent has called a tool."""

    id: str
    name: str
    input: dict[str, Any] = {}


class ToolFinished(Struct, frozen=True, kw_only=True, tag="tool_finished", tag_field="event"):
    """A tool has returned."""

    id: str
    output: str = ""
    failed: bool = False
    changed_files: tuple[str, ...] = ()


class TodoItem(Struct, frozen=True):
    """One item on the agent's to-do list."""

    text: str
    done: bool


class TodoList(Struct, frozen=True, tag="todo", tag_field="event"):
    """The agent's whole to-do list as it is now."""

    items: tuple[TodoItem, ...]


class Quota(Struct, frozen=True, kw_only=True):
    """How much of an account's quota is used, as its CLI reports it; of several, the one that is used most."""

    used: float
    """The share: 1 is all of it."""
    resets_at: int = 0
    """When it begins again, in seconds since 1970; 0 if the CLI does not say."""


class Usage(Struct, frozen=True, kw_only=True, tag="usage", tag_field="event"):
    """The tokens and money the turn used, as the CLI reports them: the last report counts."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    """None if the CLI does not report it, and nobody knows what its model costs."""
    is_estimate: bool = False
    """Whether the money is what the tokens cost by a list of prices."""
    model: str = ""
    """The model that used them, if the CLI says so or the team file does."""
    agent: str = ""
    """The program that used them, if it is not the member's own: that of a stand-in."""
    context_window: int = 0
    """The tokens that the model can take in at once; 0 if the CLI does not report it."""
    quota: Quota | None = None
    """What is used of the account's quota; None if the CLI does not report it."""


class UsageSoFar(Struct, frozen=True, tag="usage_so_far", tag_field="event"):
    """What the turn alone has used so far, if its CLI says so while it works. A Usage of all of it may follow."""

    usage: Usage


class Notice(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="notice", tag_field="event"):
    """Something people may want to know: a retry, a warning, an unknown event, a line that is not an event."""

    kind: NoticeKind
    text: str
    attempts: int = 0
    """Of a retry, how many there were in a row; 0 where nobody has counted."""
    since: int = 0
    """When the first of them was, in milliseconds since 1970."""


OR = " | "
"""Between the names of tools, if a CLI does not say about which of several it asks."""
LEAVES_SANDBOX = "leaves its sandbox"
"""The detail of a command that is to run without the CLI's own sandbox: no rule allows it."""


class ApprovalAsked(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="approval_asked", tag_field="event"):
    """The agent waits for an answer: it wants to do something that it may not do unasked, or asks a question."""

    id: str
    """Which of the turn's questions it is."""
    kind: AskedKind
    tool: str = ""
    """The tool as the CLI calls it."""
    command: str = ""
    """The whole command, exactly as it would run."""
    diff: str = ""
    """The changes that it would make to files."""
    paths: tuple[str, ...] = ()
    """The files that it would read or change."""
    details: dict[str, Any] = {}
    """What else is known of what it would do: the input of a tool that is neither a command nor an edit."""
    folder: str = ""
    """Where it would do that."""
    elsewhere: bool = False
    """Whether a command would run in another folder than the agent's own: what it does may depend on that."""
    why: str = ""
    """Why, in the agent's words."""
    choices: tuple[str, ...] = ()
    """The answers that it offers, if it asks a question."""
    can_change: bool = False
    """Whether another command can be run instead."""


class ApprovalOver(Struct, frozen=True, kw_only=True, tag="approval_over", tag_field="event"):
    """The agent does not wait for an answer any more: it was given, or the CLI has taken the question back."""

    id: str
    is_answered: bool


class Finished(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, tag="finished", tag_field="event"):
    """The turn succeeded, and this is all that the agent has said in it."""

    text: str
    texts_at: tuple[int, ...] = ()
    """Where in it each text begins but the first one: between them, the agent used tools."""
    doubt: str = ""
    """Why words of the agent may be missing in it, in a sentence; empty: all that the CLI wrote was understood."""


class Failed(Struct, frozen=True, kw_only=True, tag="failed", tag_field="event"):
    """The turn failed."""

    kind: FailureKind
    message: str
    """What happened, in a sentence."""
    hint: str = ""
    """What to do next."""
    partial_text: str = ""
    """What the agent had said by then. It is kept for people and does not become a message."""
    exit_code: int | None = None
    stderr_tail: str = ""
    reset_at: str | None = None
    """When the quota resets, as the vendor wrote it."""

    @property
    def sentence(self) -> str:
        """The message, with a full stop: a CLI's own message may lack one."""
        message = self.message.strip()
        return message if not message or message[-1] in ".!?:)…。！？" else f"{message}."

    @property
    def explanation(self) -> str:
        """What happened and what to do next, in full sentences."""
        return f"{self.sentence} {self.hint}".strip()


Event = (
    Started
    | TextDelta
    | Thinking
    | ToolStarted
    | ToolFinished
    | TodoList
    | Usage
    | UsageSoFar
    | Notice
    | ApprovalAsked
    | ApprovalOver
    | Finished
    | Failed
)


def is_work(event: Event) -> bool:
    """Return whether an agent has begun to say or to do something."""
    return isinstance(event, TextDelta | ToolStarted | ApprovalAsked)
