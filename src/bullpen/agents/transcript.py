"""What a program has written so far: events for viewers, and what is needed at the end of the turn."""

import codecs
import logging
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.driver import Driver
from bullpen.agents.spec import AgentSpec, Emit
from bullpen.agents.stream import LineSplitter, record_from
from bullpen.clock import milliseconds, monotonic
from bullpen.text.safe import EscapeStripper, strip_escape_sequences
from bullpen.text.secrets import without_secrets
from bullpen.turn_events import (
    ApprovalAsked,
    ApprovalOver,
    Event,
    Failed,
    Finished,
    Notice,
    NoticeKind,
    Started,
    TextDelta,
    Thinking,
    TodoList,
    ToolFinished,
    ToolStarted,
    Usage,
)

logger = logging.getLogger(__name__)

MAX_TEXT_BYTES = 16 * 1024 * 1024
MAX_NOTICES = 100
MAX_NOTICE_CHARACTERS = 1000
MAX_WAIT_SECONDS = 60
"""A CLI that would wait longer for its vendor is stopped: somebody else may take the turn at once."""
STDERR_TAIL_BYTES = 8 * 1024
# More is kept, so that a secret is whole when it is looked for, and only then the last of it is taken.
STDERR_KEPT_BYTES = 64 * 1024


NOT_UNDERSTOOD = (
    "This release of {program} writes what bullpen does not understand, so words of it may be missing. "
    "`bullpen explain --stream` shows all that it wrote."
)
NOTHING_SAID = "It ended without a word that bullpen understands. `bullpen explain --stream` shows all that it wrote."


class TooMuchText(Exception):
    """The agent has written more than MAX_TEXT_BYTES."""


class OtherSession(Exception):
    """The CLI runs in another session than the one it was asked to continue."""


class WaitsTooLong(Exception):
    """The CLI would wait for its vendor for longer than MAX_WAIT_SECONDS, and says why."""


class Unreachable(Struct, kw_only=True):
    """Failed connections in a row, with no sign of work between them."""

    since: float
    """As bullpen.clock.monotonic says."""
    since_time: int
    """In milliseconds since 1970."""
    latest: float = 0.0
    """When the last of them was reported."""
    reason: str = ""
    attempts: int = 0


class Transcript:
    """Reads a program's two output streams, in bounded memory."""

    def __init__(
        self,
        spec: AgentSpec,
        emit: Emit,
        masked: Callable[..., str] = without_secrets,
        driver: Driver | None = None,
    ) -> None:
        self._agent = spec.name
        self._program = spec.program
        self._waits = spec.waits
        self._emit = emit
        self.masked = masked
        self._parse = (spec.parser() if driver is None else driver).parse
        self._lines = LineSplitter() if spec.stream == "json" else None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stripper = EscapeStripper()
        self._logs_lines = logger.isEnabledFor(logging.DEBUG)
        self._line = b"\x1b"
        """The line that is read. Of an agent that writes plain text there are none, and all of it may have escapes."""
        self._text = bytearray()
        self._tools_at: list[int] = []
        """Where in the text the agent used tools."""
        self._notice_count = 0
        self.is_understood = True
        self._stderr = bytearray()
        self._is_stderr_cut = False
        self.started = Started()
        self.usage = Usage()
        self.verdict: Finished | Failed | None = None
        """The CLI's own verdict on the turn. It counts only if the exit code agrees."""
        self.unreachable: Unreachable | None = None
        """What it says of connections that have failed since it has last done anything; None: they have not."""
        self._open_tools: set[str] = set()
        self.on_unreachable: Callable[[], None] = lambda: None
        """Called with each of them."""
        self.on_verdict: Callable[[], None] = lambda: None
        self.on_output: Callable[[bytes], None] = lambda _: None
        self.on_asked: Callable[[ApprovalAsked], None] = lambda _: None
        self.on_over: Callable[[ApprovalOver], None] = lambda _: None
        self.on_read: Callable[[], None] = lambda: None
        """Called after lines were read: a driver may have something to say."""
        self.expected_session: str | None = None
        """The session that the CLI was asked to continue; None: any."""

    @property
    def text(self) -> str:
        """All the text of the agent so far."""
        return self._text.decode(errors="replace")

    @property
    def has_begun(self) -> bool:
        """Whether the program has begun a session, or said anything."""
        return self.started != Started() or self.verdict is not None or self.has_words

    @property
    def has_words(self) -> bool:
        """Whether the agent has said anything but white space."""
        return not (self.text or " ").isspace()

    def texts(self, answer: str) -> tuple[str, ...]:
        """Return all that the agent has said, tool by tool, ending with what the CLI gives as its answer."""
        ends = [*self._tools_at, len(self._text)]
        pieces = (self._text[start:end].decode(errors="replace") for start, end in pairwise((0, *ends)))
        *before, last = (piece.strip() for piece in pieces)
        said = [text for text in before if text]
        if not last and said and said[-1].endswith(answer.strip()):
            # It gives its last words as the answer, and those came before a tool.
            return tuple(said)
        return tuple(said) + _merged(last, answer)

    def doubt(self, text: str) -> str:
        """Return why words may be missing in what the agent is taken to have said; empty: they are not."""
        if not self.is_understood:
            return NOT_UNDERSTOOD.format(program=" ".join(filter(None, [self._program, self.started.cli_version])))
        return "" if self._lines is None or text.strip() else NOTHING_SAID

    def take_answer(self) -> str:
        """Return all the text as the answer, and forget it: it may be large, and is kept with the reply."""
        self._text = self._text.removesuffix(b"\n")
        text = self.text
        self._text.clear()
        return text

    @property
    def stderr_tail(self) -> str:
        """The last lines of the program's standard error, without its secrets."""
        text = strip_escape_sequences(self._stderr.decode(errors="replace"))
        masked = self.masked(text, is_cut=self._is_stderr_cut).strip()
        return masked.encode(errors="replace")[-STDERR_TAIL_BYTES:].decode(errors="ignore")

    def feed(self, chunk: bytes) -> None:
        """Read a piece of standard output."""
        if self._lines is None:
            self.on_output(chunk)
            self._read_text(self._decoder.decode(chunk))
        else:
            self._read_lines(self._lines.feed(chunk), b"\n")
            self.on_read()
            if self._lines.bytes_cut:
                # The line that was too long may have been the final event. The CLI must not wait for us forever.
                self.on_verdict()

    def feed_errors(self, chunk: bytes) -> None:
        """Read a piece of standard error."""
        self._is_stderr_cut |= len(self._stderr) + len(chunk) > STDERR_KEPT_BYTES
        self._stderr += chunk[-STDERR_KEPT_BYTES:]
        del self._stderr[:-STDERR_KEPT_BYTES]
        if self._waits and b"ms" in chunk:
            self._look_for_a_wait()

    def _look_for_a_wait(self) -> None:
        for wait in re.finditer(self._waits, self.stderr_tail):
            if int(wait["milliseconds"]) > 1000 * MAX_WAIT_SECONDS:
                raise WaitsTooLong(wait["why"])

    def finish(self) -> None:
        """Read the rest when the program has ended."""
        if self._lines is None:
            self._read_text(self._decoder.decode(b"", final=True))
            self._add_text(TextDelta(self._stripper.finish()))
            return
        self._read_lines(self._lines.finish(), b"")
        self._add_text(TextDelta(self._stripper.finish()))
        if self._lines.bytes_cut:
            self.is_understood = False
            self._emit(Notice(kind="warning", text=f"{self._lines.bytes_cut:,} bytes of overlong lines were dropped"))
        if self._notice_count > MAX_NOTICES:
            self._emit(Notice(kind="warning", text=f"{self._notice_count - MAX_NOTICES:,} more notices were dropped"))
        if isinstance(self.verdict, Finished) and (doubt := self.doubt(self.text + self.verdict.text)):
            self._emit(Notice(kind="warning", text=doubt))

    def _read_text(self, text: str) -> None:
        if text:
            self._read_record(text)

    def _read_lines(self, lines: list[bytes], line_end: bytes) -> None:
        """Read lines, and pass them on as they are; those that are only notices as a notice shows them."""
        passed_on: list[bytes] = []
        try:
            for line in lines:
                notices = self._notice_count
                self._read_line(line)
                if self._notice_count == notices:
                    passed_on += (line, line_end)
                elif notices < MAX_NOTICES:
                    passed_on += (self._shown(line).encode(errors="replace"), line_end)
        finally:
            if passed_on:
                self.on_output(b"".join(passed_on))

    def _read_line(self, line: bytes) -> None:
        if not line or line.isspace():
            return
        record = record_from(line)
        self._line = line
        if self._logs_lines:
            logger.debug("[Debug][Receive] agent=%s %s", self._agent, self.masked(line.decode(errors="replace")))
        if record is None:
            # A program may print a warning between its records; but not a record that is broken.
            self.is_understood &= not line.lstrip().startswith(b"{")
            self._emit_notice("noise", line)
        else:
            self._read_record(record)

    def _read_record(self, record: object) -> None:
        try:
            events = list(self._parse(record))
        except Exception:
            # A vendor's new release may write anything; a record that we cannot read is shown as a notice.
            logger.debug("unreadable record %s", self.masked(str(record)), exc_info=True)
            self._emit_notice("unknown", str(record))
            return
        for event in events:
            self._on_event(event)

    def _on_event(self, event: Event) -> None:
        self._note_work(event)
        if isinstance(event, TextDelta):
            text = self._stripper.feed(self._apart(event.text))
            self._add_text(event if text is event.text else TextDelta(text))
            return
        if isinstance(event, ApprovalAsked):
            # With its escapes, and with what only looks like a secret: nobody may be shown less than what would run,
            # and no rule may read less.
            self.on_asked(_masked(event, partial(self.masked, only_known=True)))
            return
        if isinstance(event, ApprovalOver):
            self.on_over(event)
            return
        # A verdict may repeat text of earlier lines.
        if isinstance(event, Finished | Failed) or _may_have_escapes(self._line):
            event = _plain(event)
        if isinstance(event, Finished | Failed):
            if isinstance(event, Finished):
                self._check_session(self.started.session_id or "")
            self.verdict = event
            self.on_verdict()
            return
        if isinstance(event, Notice):
            if event.kind == "unknown":
                self._emit_notice(event.kind, event.text)
                return
            event = replace(event, text=self.masked(event.text))
            if event.kind == "retry":
                self.verdict = None  # it was not the last word
                event = self._counted(event)
        if isinstance(event, ToolStarted | ToolFinished) and self._tools_at[-1:] != [len(self._text)]:
            self._tools_at.append(len(self._text))
        if isinstance(event, Usage):
            self.usage = event
        elif isinstance(event, Started):
            # Some say only at the end which session it is.
            if event.session_id is not None:
                self._check_session(event.session_id)
            self.started = event
        self._emit(event)

    def _note_work(self, event: Event) -> None:
        """Forget failed connections when an agent works."""
        if isinstance(event, ToolStarted):
            self._open_tools.add(event.id)
        elif isinstance(event, ToolFinished):
            self._open_tools.discard(event.id)
        if isinstance(event, TextDelta | Thinking | ToolStarted | ToolFinished | TodoList | ApprovalAsked):
            self.unreachable = None

    def _counted(self, retry: Notice) -> Notice:
        """Return a retry with how many there were in a row. While a tool runs, they may be about something else."""
        if self._open_tools:
            return retry
        failing = self.unreachable
        if failing is None:
            failing = self.unreachable = Unreachable(since=monotonic(), since_time=milliseconds())
        failing.attempts, failing.reason, failing.latest = failing.attempts + 1, retry.text, monotonic()
        self.on_unreachable()
        return replace(retry, attempts=failing.attempts, since=failing.since_time)

    def _check_session(self, session: str) -> None:
        if self.expected_session not in (None, session):
            raise OtherSession(f"It began another session instead of continuing {self.expected_session}.")

    def _apart(self, text: str) -> str:
        """Return a text with what keeps it apart from one that came before a tool."""
        if not text or not self._text or self._tools_at[-1:] != [len(self._text)]:
            return text
        breaks = len(self._text) - len(self._text.rstrip(b"\n")) + len(text) - len(text.lstrip("\n"))
        return "\n" * max(0, 2 - breaks) + text

    def _add_text(self, piece: TextDelta) -> None:
        if not piece.text:
            return
        # As bytes, since many short strings would need many times their length.
        self._text += piece.text.encode(errors="replace")
        if len(self._text) > MAX_TEXT_BYTES:
            raise TooMuchText
        self._emit(piece)

    def _emit_notice(self, kind: NoticeKind, text: str | bytes) -> None:
        self.is_understood &= kind != "unknown"
        self._notice_count += 1
        if self._notice_count <= MAX_NOTICES:
            self._emit(Notice(kind=kind, text=self._shown(text)[:MAX_NOTICE_CHARACTERS]))

    def _shown(self, text: str | bytes) -> str:
        """Return the beginning of a notice without secrets: more than is shown, so that all in it are whole."""
        text = text[: 8 * MAX_NOTICE_CHARACTERS]
        return self.masked(text if isinstance(text, str) else text.decode(errors="replace"))


def _merged(streamed: str, answer: str) -> tuple[str, ...]:
    """Return the last words as they were streamed and as they were given as the answer, each once."""
    whole = answer.strip()
    if not streamed or streamed in whole:
        return (answer,) if whole else ()
    if streamed.endswith(whole):
        before = streamed.removesuffix(whole).rstrip()
        # After a lost connection, some begin the answer again: its beginning is there twice.
        return (answer,) if whole.startswith(before) else (before, answer) if whole else (streamed,)
    return (streamed,) if whole in streamed else (streamed, answer)


def _masked(asked: ApprovalAsked, masked: Callable[..., str]) -> ApprovalAsked:
    """Return a question without secrets. Its id is the program's own, and stays as it is."""
    return replace(msgspec.convert(_masked_values(msgspec.to_builtins(asked), masked), ApprovalAsked), id=asked.id)


def _masked_values(value: Any, masked: Callable[..., str]) -> Any:
    match value:
        case str():
            return masked(value)
        case list() | tuple():
            return [_masked_values(item, masked) for item in value]
        case dict():
            return {key: _masked_values(item, masked) for key, item in value.items()}
        case _:
            return value


def _may_have_escapes(line: bytes) -> bool:
    """Return whether a line of JSON may have escape sequences, written as escapes of JSON or as UTF-8."""
    return b"\\u00" in line or b"\xc2" in line or b"\x1b" in line


def _plain(event: Event) -> Event:
    """Return an event without escape sequences in its text."""
    match event:
        case Finished(text=text) | Thinking(text=text) | Notice(text=text):
            return replace(event, text=strip_escape_sequences(text))
        case ToolStarted(name=name, input=given):
            return replace(event, name=strip_escape_sequences(name), input=_plain_values(given))
        case ToolFinished(output=output):
            return replace(event, output=strip_escape_sequences(output))
        case Failed(message=message):
            return replace(event, message=strip_escape_sequences(message))
        case _:
            return event


def _plain_values(value: Any) -> Any:
    match value:
        case str():
            return strip_escape_sequences(value)
        case list():
            return [_plain_values(item) for item in value]
        case dict():
            return {key: _plain_values(item) for key, item in value.items()}
        case _:
            return value
