"""From prepared context to one prompt: four layouts, one mechanism, an exact byte budget."""

import re
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from operator import itemgetter
from typing import ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.cache import SelfFillingCache
from bullpen.context.budget import SECTION_SEPARATOR, Budget
from bullpen.context.headings import GuardedText, LineGuard
from bullpen.context.lines import HistoryLines, Line, changed_messages
from bullpen.context.prompt import DEFAULT_MAX_BYTES, EVERYONE, AssemblerInput, AssemblerOutput, PromptContextMessage
from bullpen.context.report import ChangedMessage, PromptReport, SummaryUse
from bullpen.context.views import View, Window
from bullpen.errors import PromptTooLarge
from bullpen.text.clean import byte_length, clean_text, one_line, trimmed, truncate_to_bytes

Overflow = Literal["cut", "error"]

MOST_TRIES = 16
REMARK_START = "(bullpen: "
SHOWN_START = f"{REMARK_START}This was asked to be shown.)\n"
NOTHING_SHOWN = f"{REMARK_START}There is no room for what was asked to be shown.)"
_PLACEHOLDERS = re.compile(r"(\{sender\}|\{to\}|\{content\})")
_text, _size, _messages = map(itemgetter, range(3))


class PromptLayout(Struct, frozen=True, kw_only=True):
    """How one agent wants its prompt: five strings. An empty header is not printed."""

    system_header: str | None
    """None: the system text is passed separately, as a flag."""
    team_task_header: str
    context_header: str
    message_header: str
    context_line: str
    """With {sender}, {to} and {content}."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The lines that only this layout may contain."""
        headers = (self.system_header, self.team_task_header, self.context_header, self.message_header)
        return tuple(header for header in headers if header)

    def line_starts(self, names: Iterable[str]) -> tuple[str, ...]:
        """How the lines of these people begin in the history."""
        before_name, _, after_name, *_ = _PLACEHOLDERS.split(self.context_line)
        return tuple(f"{before_name}{one_line(name)}{after_name}" for name in names if name)


class SummaryLines(Struct, frozen=True, kw_only=True):
    """The lines of a summary in a prompt, and what the report says of it."""

    lines: tuple[str, ...] = ()
    """Ours, which no message can contain, and the summary as any other message."""
    size: int = 0
    """With the line feed after each."""
    use: SummaryUse | None = None


NO_SUMMARY = SummaryLines()
NO_GUARD = LineGuard((), ())


class ContextAssembler:
    """Assembles prompts in its layout. The fixed text is added first, then the message, then the newest history.

    With as_specified=True no line of a message is indented and no code closed: messages are as they are, also where
    they look like a heading.
    """

    agent_type: ClassVar[str]
    layout: ClassVar[PromptLayout]

    def __init__(self, *, as_specified: bool = False) -> None:
        self._as_specified = as_specified
        self._idle: list[ContextAssembler] = []
        """A copy that makes prompts: names and cached lines belong to one at a time, and several threads may ask."""
        self._line_pieces = _PLACEHOLDERS.split(self.layout.context_line)
        self._body_pieces = _PLACEHOLDERS.split(self.layout.context_line.removeprefix("- "))

    def get_agent_type(self) -> str:
        """Return the agent type of these prompts."""
        return self.agent_type

    def assemble(self, source: AssemblerInput, *, overflow: Overflow = "cut") -> AssemblerOutput:
        """Return the prompt and its report. Prompt and system text have at most source.max_bytes.

        The oldest context is dropped first, then the current message is cut. System text and team task never are:
        if they do not fit, or with overflow="error" the message does not, this raises PromptTooLarge.
        """
        if overflow not in ("cut", "error"):
            raise ValueError(f"overflow must be 'cut' or 'error', got {overflow!r}")
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = copy(self)
            worker._set_names(source.names)
        try:
            return worker._assembled(source, overflow)
        finally:
            self._idle = [worker]

    def _assembled(self, source: AssemblerInput, overflow: Overflow) -> AssemblerOutput:
        if source.names != self._names:
            self._set_names(source.names)
        budget = Budget(source.max_bytes)
        flag, *fixed = self._fixed_sections(source, budget)
        message, message_bytes_cut, changed_message = self._message_section(source, budget, overflow)
        # After a cut, a few bytes may be left. They must not be filled with old history.
        affordable = () if message_bytes_cut else source.context_messages
        context, unseen, summary = self._context_lines(source, affordable, budget)
        dropped = len(source.context_messages) - sum(map(_messages, context))
        ids = _ids(source.context_messages)
        report = PromptReport(
            agent_type=self.agent_type,
            max_bytes=source.max_bytes,
            section_bytes=budget.section_bytes,
            context_ids=ids,
            dropped_messages=dropped,
            message_bytes_cut=message_bytes_cut,
            team_task_bytes_cut=source.team_task_bytes_cut,
            later_messages=source.later_messages,
            changed=(*changed_messages(context, ids, dropped), *changed_message),
            unseen_messages=unseen,
            summary=summary.use,
        )
        lines = [*([unseen_note(unseen)] if unseen else []), *summary.lines, *map(_text, context)]
        header = [self.layout.context_header] if lines and self.layout.context_header else []
        prompt = _joined([*([section] for section in fixed), header + lines, [message]])
        return AssemblerOutput(prompt=prompt, system_flag=flag or None, report=report)

    def _set_names(self, names: Sequence[str]) -> None:
        """Use these names from now on. Cached lines are forgotten, since they were built without them."""
        self._names = names
        starts = self.layout.line_starts(names)
        bare_starts = tuple(start.removeprefix("- ") for start in starts)
        remarks = (REMARK_START,) if names else ()
        all_starts = tuple(dict.fromkeys([*starts, *bare_starts]))
        self._history_guard = self._guard(starts, remarks)
        self._message_guard = self._guard(all_starts, remarks)
        # Not a method, which would create a reference cycle of assembler and cache.
        line = partial(_line, self._history_guard, self._line_pieces)
        self._lines = SelfFillingCache(2 * DEFAULT_MAX_BYTES, line, size_of=_size)
        self._history_lines = HistoryLines(self._lines)

    def _guard(self, speaker_starts: tuple[str, ...], other_starts: tuple[str, ...]) -> LineGuard:
        return NO_GUARD if self._as_specified else LineGuard(self.layout.headings, speaker_starts, other_starts)

    def _fixed_sections(self, source: AssemblerInput, budget: Budget) -> tuple[str, str, str]:
        """Return the system flag, the system section (one of the two is empty) and the team task section."""
        system = join_instructions(source.system_instruction, source.instruction_file_text) or ""
        flag = system if self.layout.system_header is None else ""
        section = "" if flag else _section(self.layout.system_header, system)
        task = _section(self.layout.team_task_header, trimmed(source.team_task))
        budget.spend_separately("system", byte_length(flag))
        budget.spend("system", byte_length(section))
        budget.spend("team_task", byte_length(task))
        if budget.left < 0:
            raise self._too_large(source, budget, "Shorten the instructions or the team task, or raise max_bytes.")
        return flag, section, task

    def _message_section(
        self, source: AssemblerInput, budget: Budget, overflow: Overflow
    ) -> tuple[str, int, tuple[ChangedMessage, ...]]:
        """Return the current message's section, how many bytes of it did not fit, and what was changed."""
        header = self.layout.message_header
        who, message = self._message_start(source), trimmed(source.current_message)
        remark = f"{REMARK_START}{trimmed(source.remark)})" if source.remark else ""
        room = budget.room - _header_bytes(header)
        ours = self._ours(source.shown, remark, room - byte_length(who) - byte_length(message))
        if not message:
            section = _section(header, ours)
            budget.spend("message", byte_length(section))
            if budget.left < 0:
                raise self._too_large(source, budget, "Shorten the instructions, or raise max_bytes.")
            return section, 0, ()
        if ours:
            message, ours = self._message_guard.closed(message), f"{SECTION_SEPARATOR}{ours}"
        guarded = whole = self._guarded(who, message)
        size = byte_length(who) + byte_length(whole.text)
        room -= byte_length(ours)
        if size > room:
            guarded = self._cut(who, message, room) if overflow == "cut" and room > 0 else GuardedText("")
            if not guarded.text:
                budget.section_bytes["message"] = size
                raise self._too_large(source, budget, "Shorten the message or the instructions, or raise max_bytes.")
        body = who + guarded.text
        section = _section(header, body + ours)
        budget.spend("message", byte_length(section))
        lines = guarded.indented_lines
        return section, size - byte_length(body), (ChangedMessage(id="", indented_lines=lines),) if lines else ()

    def _ours(self, shown: Sequence[str], remark: str, room: int) -> str:
        """Return what we add after a message: what it asks to be shown, as far as there is room, and our remark.

        Each part begins as no line of a message can, so that nobody can write one that seems to be ours.
        """
        parts = [SHOWN_START + self._message_guard.guarded(trimmed(part), has_own_start=False).text for part in shown]
        whole = SECTION_SEPARATOR.join([*parts, *([remark] if remark else [])])
        if not parts or byte_length(whole) + len(SECTION_SEPARATOR) <= room:
            return whole
        return SECTION_SEPARATOR.join([NOTHING_SHOWN, *([remark] if remark else [])])

    def _guarded(self, who: str, message: str) -> GuardedText:
        guard = self._message_guard if who else self._history_guard
        return guard.guarded(message, has_own_start=bool(who))

    def _context_lines(
        self, source: AssemblerInput, messages: Sequence[PromptContextMessage], budget: Budget
    ) -> tuple[list[Line], int | None, "SummaryLines"]:
        """Return the lines of the newest messages that fit, how many are not shown, and what covers those."""
        room = budget.room - _header_bytes(self.layout.context_header)
        note = _room_for_note(source, room)
        self._lines.max_bytes = max(self._lines.max_bytes, 2 * budget.left)
        lines, size = self._history_lines.newest_that_fit(messages, room - note)
        dropped = len(source.context_messages) - sum(map(_messages, lines))
        summary = self._summary(source, room - note, dropped)
        if summary.size:
            lines, size = self._history_lines.newest_that_fit(messages, room - note - summary.size)
            size += summary.size if lines else summary.size - 1
        unseen = None
        if source.unseen_messages is not None and (note or not source.unseen_messages):
            unseen = source.unseen_messages + len(source.context_messages) - sum(map(_messages, lines))
        size += byte_length(unseen_note(unseen)) + bool(size) if unseen else 0
        if size:
            budget.spend("context", size + _header_bytes(self.layout.context_header))
        return lines, unseen, summary

    def _summary(self, source: AssemblerInput, room: int, dropped: int) -> "SummaryLines":
        """Return a summary that covers messages which are not shown: whole, in at most half of the room."""
        summary = source.summary
        if summary is None or source.unseen_messages is None or not (summary.missing or dropped):
            return NO_SUMMARY
        use = SummaryUse(number=summary.number, first=summary.first, last=summary.last)
        note = f"{REMARK_START}Summary #{use.number} covers the messages #{use.first} to #{use.last}.)"
        line = self._lines[summary.message]
        size = byte_length(note) + 1 + line.size + 1
        if 2 * size > room:
            return SummaryLines(use=replace(use, is_left_out=True))
        return SummaryLines(lines=(note, line.text), size=size, use=use)

    def _message_start(self, source: AssemblerInput) -> str:
        """Return what comes before the current message in its line."""
        if source.current_from is None:
            return ""
        return _fill(self._body_pieces, source.current_from, source.current_to, "")

    def _cut(self, who: str, message: str, room: int) -> GuardedText:
        """Return as much of a message as fits. It is guarded after cutting, which may open code or create a heading."""
        wanted = room = room - byte_length(who)
        tries = 0
        while wanted > 0:
            guarded = self._guarded(who, truncate_to_bytes(message, wanted))
            excess = byte_length(guarded.text) - room
            if excess <= 0:
                return guarded
            tries += 1
            # Nearly always the second try fits. A text crafted to take long is halved instead.
            wanted = wanted - excess if tries < MOST_TRIES else wanted // 2
        return GuardedText("")

    def _too_large(self, source: AssemblerInput, budget: Budget, advice: str) -> PromptTooLarge:
        sizes = budget.section_bytes
        return PromptTooLarge(self.agent_type, max_bytes=source.max_bytes, section_bytes=sizes, advice=advice)


class ClaudeContextAssembler(ContextAssembler):
    """Claude Code gets the system text separately."""

    agent_type = "claude-code"
    layout = PromptLayout(
        system_header=None,
        team_task_header="[TEAM_TASK]",
        context_header="[CONTEXT]",
        message_header="[MESSAGE]",
        context_line="- {sender} -> {to}: {content}",
    )


class CodexContextAssembler(ContextAssembler):
    """Codex gets everything in the prompt."""

    agent_type = "openai-codex"
    layout = PromptLayout(
        system_header="[SYSTEM]",
        team_task_header="[TEAM_TASK]",
        context_header="[CONTEXT]",
        message_header="[MESSAGE]",
        context_line="- {sender} -> {to}: {content}",
    )


class GeminiContextAssembler(ContextAssembler):
    """Gemini gets everything in the prompt, with plain headings and without addressees."""

    agent_type = "google-gemini"
    layout = PromptLayout(
        system_header="Instructions:",
        team_task_header="Team Task:",
        context_header="Conversation so far:",
        message_header="Your task:",
        context_line="- {sender}: {content}",
    )


class PlainTextAssembler(ContextAssembler):
    """For any other agent: only text, as in a chat log."""

    agent_type = "unknown"
    layout = PromptLayout(
        system_header="",
        team_task_header="",
        context_header="",
        message_header="",
        context_line="{sender}: {content}",
    )


def join_instructions(system_instruction: str | None, instruction_file_text: str | None) -> str | None:
    """Return the configured instruction and the instruction file as one text; None if both are empty."""
    parts = (trimmed(part) for part in (system_instruction, instruction_file_text))
    return SECTION_SEPARATOR.join(part for part in parts if part) or None


def unseen_note(count: int) -> str:
    """Return the line that tells an agent how many earlier messages it does not see."""
    return f"({count:,} earlier message{' is' if count == 1 else 's are'} not shown.)"


def _room_for_note(source: AssemblerInput, room: int) -> int:
    """Return the bytes to keep free for the line about messages that are not shown; 0 if there is no room for it."""
    if source.unseen_messages is None:
        return 0
    possible = source.unseen_messages + len(source.context_messages)
    size = byte_length(unseen_note(possible)) + 1 if possible else 0
    return size if size <= room else 0


def _joined(sections: list[list[str]]) -> str:
    """Return the lines of all sections with an empty line between them. Copies only once: they may be megabytes."""
    lines: list[str] = []
    for section in sections:
        if any(section):
            lines += ["", *section] if lines else section
    return "\n".join(lines)


def _section(header: str | None, body: str) -> str:
    return f"{header}\n{body}" if header and body else body


def _line(guard: LineGuard, pieces: list[str], message: PromptContextMessage) -> Line:
    """Return a message's line and its size."""
    guarded = guard.guarded(clean_text(message.content), has_own_start=True)
    content = guard.closed(guarded.text)
    text = _fill(pieces, message.sender, message.to, content)
    indented, closed = guarded.indented_lines, content != guarded.text
    change = ChangedMessage(id="", indented_lines=indented, code_closed=closed)
    return Line(text, byte_length(text), changes=((0, change),) if indented or closed else ())


def _header_bytes(header: str) -> int:
    return byte_length(header) + 1 if header else 0


def _fill(pieces: list[str], sender: str, to: str | None, content: str) -> str:
    # Joined, never formatted: braces, %s and backslashes in a message are text.
    values = {"{sender}": one_line(sender), "{to}": one_line(to or EVERYONE), "{content}": content}
    return "".join([values.get(piece, piece) for piece in pieces])


def _ids(messages: Sequence[PromptContextMessage]) -> Sequence[str]:
    if isinstance(messages, Window):
        return messages.ids
    return View(range(1, len(messages) + 1), "#{}".format)
