"""The input and the output of an assembler."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from bullpen.context.report import PromptReport

DEFAULT_CONTEXT_WINDOW_SIZE = 5
DEFAULT_MAX_BYTES = 768 * 1024
"""Below macOS's ARG_MAX of 1 MB, and the same for every agent (specification 004)."""

EVERYONE = "all"
NO_REPORT = PromptReport(agent_type="", max_bytes=0, section_bytes={})


class PromptContextMessage(Struct, frozen=True, kw_only=True, cache_hash=True):
    """One earlier message as an agent will read it: markers stripped, names instead of ids."""

    sender: str
    """The specification's `from`, which is a keyword in Python."""
    to: str | None = None
    """None prints as "all"."""
    content: str
    timestamp: int | datetime | None = None
    """When it was said. No layout shows it."""


class ContextSummary(Struct, frozen=True, kw_only=True):
    """A summary that covers earlier messages, as far as these are not shown."""

    number: int
    """Of the message that it is."""
    first: int
    last: int
    """The messages that it covers."""
    message: PromptContextMessage
    missing: int
    """How many of them are not among the context messages. If all are, and all fit, it is not needed."""


class AssemblerInput(Struct, frozen=True, kw_only=True):
    """Everything that goes into one prompt."""

    context_messages: Sequence[PromptContextMessage] = ()
    """Oldest first."""
    current_message: str = ""
    team_task: str | None = None
    team_task_bytes_cut: int = 0
    """How many bytes the task was over its limit; only for the report."""
    later_messages: int = 0
    """How many messages came after the current one; only for the report."""
    unseen_messages: int | None = None
    """How many earlier messages are not among them. The prompt says so; None says nothing, as in the specification."""
    summary: ContextSummary | None = None
    """What covers those of them that were summed up; only with unseen_messages."""
    system_instruction: str | None = None
    instruction_file_text: str | None = None
    shown: Sequence[str] = ()
    """What the message asks to be shown, from us: it comes after the message, where nobody else can write it."""
    remark: str = ""
    """What the agent should know besides, from us: it comes last."""
    max_bytes: int = DEFAULT_MAX_BYTES
    """For prompt and system text together, in UTF-8."""
    current_from: str | None = None
    """The speaker of the current message. None omits it, as in the specification."""
    current_to: str | None = None
    """Its addressees, in layouts that show them; only used with current_from."""
    names: Sequence[str] = ()
    """Everyone who may have spoken: a line in a text that begins like one of theirs is indented."""


class AssemblerOutput(Struct, frozen=True, kw_only=True):
    """What is sent to an agent, and the report about it."""

    prompt: str
    """For the agent's standard input."""
    system_flag: str | None = None
    """For agents that get the system text separately."""
    report: PromptReport = NO_REPORT
    """Custom assemblers need not provide one."""
