"""build_prompt: merge the instructions, pick the assembler, and report what was sent."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from bullpen.context.agent_types import AssemblerSet
from bullpen.context.assemblers import ContextAssembler, Overflow
from bullpen.context.budget import SECTION_SEPARATOR
from bullpen.context.prompt import (
    DEFAULT_CONTEXT_WINDOW_SIZE,
    DEFAULT_MAX_BYTES,
    AssemblerInput,
    AssemblerOutput,
    ContextSummary,
    PromptContextMessage,
)
from bullpen.context.sent_log import log_sent
from bullpen.errors import PromptTooLarge
from bullpen.text.clean import byte_length, trimmed, truncate_to_bytes

PromptOutput = AssemblerOutput
"""The specification has two names for what goes to an agent; it is one thing."""

# A long configured instruction would leave no room; the file still gets this fraction of the limit.
SMALLEST_FILE_SHARE = 8
SMALLEST_FILE_TEXT = 32
"""Bytes of the file that are always kept, besides the note about the cut."""


class PromptInput(Struct, frozen=True, kw_only=True):
    """Everything build_prompt needs to know."""

    agent_type: str
    message: str
    context_messages: Sequence[PromptContextMessage] = ()
    """Oldest first, stripped of markers."""
    window: int | None = DEFAULT_CONTEXT_WINDOW_SIZE
    """How many of them are used, the newest; None uses all."""
    message_id: str = ""
    """The id of the message that is answered; only for the report."""
    later_messages: int = 0
    """How many messages came after the one that is answered; only for the report."""
    unseen_messages: int | None = None
    """How many earlier messages are not among them. The prompt says so; None says nothing, as in the specification."""
    summary: ContextSummary | None = None
    """What covers those of them that were summed up; only with unseen_messages."""
    system_instruction_text: str | None = None
    """From the configuration; never shortened."""
    instruction_file_text: str | None = None
    """From CLAUDE.md or a similar file; shortened in the middle when the system text is over its limit."""
    instruction_files: Sequence[str] = ()
    """Its name, and of those that it imports; only for the report."""
    read_by_itself: Sequence[str] = ()
    """Instruction files that the agent reads by itself; only for the report."""
    instruction_problems: Sequence[str] = ()
    """Why instruction files could not be read, a sentence for each; only for the report."""
    team_task: str | None = None
    team_task_bytes_cut: int = 0
    """How many bytes the task was over its limit; only for the report."""
    shown: Sequence[str] = ()
    """What the message asks to be shown, from us: it comes after the message."""
    remark: str = ""
    """What the agent should know besides, from us: it comes last."""
    max_bytes: int = DEFAULT_MAX_BYTES
    max_system_bytes: int | None = None
    """The limit for both instructions together. None means half of max_bytes."""
    current_from: str | None = None
    current_to: str | None = None
    names: Sequence[str] = ()
    """Everyone who may have spoken, so that no other text can pass for theirs."""


def build_prompt(
    source: PromptInput, *, overflow: Overflow = "cut", assembler: ContextAssembler | None = None
) -> PromptOutput:
    """Return what to send to the agent. Neither instruction can erase the other, and no cut is silent.

    The agent type picks the assembler, unless one is given: agents that the specification does not know have their
    own, and one that is kept does not render the same history again. Without one, nothing is kept between calls.
    """
    if source.window is not None and source.window < 0:
        raise ValueError(f"window must not be negative, got {source.window}")
    offered = source.context_messages
    if source.window is not None:
        offered = offered[max(0, len(offered) - source.window) :]
    assembler = assembler or AssemblerSet().for_agent(source.agent_type)
    output = _assembled(replace(source, context_messages=offered), assembler, overflow)
    log_sent(output)
    return output


def _assembled(source: PromptInput, assembler: ContextAssembler, overflow: Overflow) -> PromptOutput:
    """Return the prompt. If the instruction file makes it too large, it contains less of the file, or none."""
    configured, file_text = trimmed(source.system_instruction_text), trimmed(source.instruction_file_text)
    limit = source.max_bytes // 2 if source.max_system_bytes is None else source.max_system_bytes
    room = _room_for_file(limit, configured, byte_length(file_text))
    refused: PromptTooLarge | None = None
    while True:
        shortened, bytes_cut = _shorten(file_text, room)
        try:
            output = assembler.assemble(_assembler_input(source, configured, shortened), overflow=overflow)
        except PromptTooLarge as error:
            refused = refused or error
            is_because_of_message = bool(error.section_bytes.get("message"))
            if not shortened or (is_because_of_message and overflow == "error"):
                raise refused from None
            room = min(room, byte_length(shortened)) // 2
            continue
        report = replace(
            output.report,
            message_id=source.message_id,
            instruction_bytes_cut=bytes_cut,
            instruction_files=tuple(source.instruction_files),
            read_by_itself=tuple(source.read_by_itself),
            instruction_problems=tuple(source.instruction_problems),
        )
        return replace(output, report=report)


def _assembler_input(source: PromptInput, configured: str, file_text: str) -> AssemblerInput:
    return AssemblerInput(
        context_messages=source.context_messages,
        current_message=source.message,
        team_task=source.team_task,
        team_task_bytes_cut=source.team_task_bytes_cut,
        later_messages=source.later_messages,
        unseen_messages=source.unseen_messages,
        summary=source.summary,
        system_instruction=configured,
        instruction_file_text=file_text,
        shown=source.shown,
        remark=source.remark,
        max_bytes=source.max_bytes,
        current_from=source.current_from,
        current_to=source.current_to,
        names=source.names,
    )


def _room_for_file(limit: int, configured: str, size: int) -> int:
    """Return the bytes an instruction file may have: what the configured text leaves, but at least a minimum."""
    taken = byte_length(configured) + len(SECTION_SEPARATOR) if configured else 0
    return max(limit - taken, limit // SMALLEST_FILE_SHARE, byte_length(_cut_note(size)) + SMALLEST_FILE_TEXT)


def _shorten(text: str, room: int) -> tuple[str, int]:
    """Return the file's head and tail with a note between them, in room bytes, and how many bytes were cut."""
    size = byte_length(text)
    if size <= room:
        return text, 0
    if room < byte_length(_cut_note(size)):
        return "", size
    room_for_text = max(room - byte_length(_cut_note(size)), 0)
    tail_room = room_for_text // 3
    head = truncate_to_bytes(text, room_for_text - tail_room)
    tail = text.encode()[size - tail_room :].decode(errors="ignore")
    bytes_cut = size - byte_length(head) - byte_length(tail)
    shortened = f"{head}{_cut_note(bytes_cut)}{tail}"
    return (shortened, bytes_cut) if byte_length(shortened) < size else (text, 0)


def _cut_note(bytes_cut: int) -> str:
    return f"\n\n[... {bytes_cut:,} bytes of the instruction file left out ...]\n\n"
