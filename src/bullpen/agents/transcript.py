"""What a program has written so far: events for those who watch, and what the end of the turn will need."""

import codecs
import logging
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bullpen.agents.spec import AgentSpec, Emit
from bullpen.agents.stream import LineSplitter, record_from
from bullpen.text.escape_sequences import EscapeStripper, strip_escape_sequences
from bullpen.text.secrets import without_secrets
from bullpen.turn_events import (
    Event,
    Failed,
    Finished,
    Notice,
    NoticeKind,
    Started,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
    Usage,
)

logger = logging.getLogger(__name__)

MAX_TEXT_BYTES = 16 * 1024 * 1024
MAX_NOTICES = 100
MAX_NOTICE_CHARACTERS = 1000
STDERR_TAIL_BYTES = 8 * 1024


class TooMuchText(Exception):
    """The agent says more than anybody can read."""


class Transcript:
    """Reads a program's two streams. Bounded: what is kept does not grow with what is written."""

    def __init__(self, spec: AgentSpec, emit: Emit, masked: Callable[[str], str] = without_secrets) -> None:
        self._agent = spec.name
        self._emit = emit
        self._masked = masked
        self._parse = spec.parser().parse
        self._lines = LineSplitter() if spec.stream == "json" else None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stripper = EscapeStripper()
        self._said = bytearray()
        self._notices = 0
        self._stderr = b""
        self.started = Started()
        self.usage = Usage()
        self.verdict: Finished | Failed | None = None
        """The CLI's own word on how the turn ended. Its exit code must agree before we believe it."""
        self.on_verdict: Callable[[], None] = lambda: None
        self.on_output: Callable[[bytes], None] = lambda _: None

    @property
    def text(self) -> str:
        """All that the agent has said."""
        return self._said.decode(errors="replace")

    @property
    def stderr_tail(self) -> str:
        """The last lines of the program's standard error, without its secrets."""
        tail = self._stderr
        if len(tail) == STDERR_TAIL_BYTES:
            # The first word may be half a key, which nobody could recognise.
            tail = b"".join(tail.split(None, 1)[1:])
        return self._masked(strip_escape_sequences(tail.decode(errors="replace"))).strip()

    def feed(self, chunk: bytes) -> None:
        """Read a piece of standard output."""
        self.on_output(chunk)
        if self._lines is None:
            self._read_text(self._decoder.decode(chunk))
        else:
            for line in self._lines.feed(chunk):
                self._read_line(line)
            if self._lines.bytes_cut:
                # The line that was too long may have been the last word. A CLI that waits for us must not wait forever.
                self.on_verdict()

    def feed_errors(self, chunk: bytes) -> None:
        """Read a piece of standard error."""
        self._stderr = (self._stderr + chunk[-STDERR_TAIL_BYTES:])[-STDERR_TAIL_BYTES:]

    def finish(self) -> None:
        """Read what is left when the program has ended."""
        if self._lines is None:
            self._read_text(self._decoder.decode(b"", final=True))
            self._say(TextDelta(self._stripper.finish()))
            return
        for line in self._lines.finish():
            self._read_line(line)
        self._say(TextDelta(self._stripper.finish()))
        if self._lines.bytes_cut:
            self._emit(Notice(kind="warning", text=f"{self._lines.bytes_cut:,} bytes of overlong lines were left out"))
        if self._notices > MAX_NOTICES:
            self._emit(Notice(kind="warning", text=f"{self._notices - MAX_NOTICES:,} more notices were left out"))

    def _read_text(self, text: str) -> None:
        if text:
            self._read_record(text)

    def _read_line(self, line: bytes) -> None:
        if not line or line.isspace():
            return
        record = record_from(line)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("[Debug][Receive] agent=%s %s", self._agent, line.decode(errors="replace"))
        if record is None:
            self._notice("noise", line[:MAX_NOTICE_CHARACTERS])
        else:
            self._read_record(record)

    def _read_record(self, record: object) -> None:
        try:
            events = list(self._parse(record))
        except Exception:
            # A vendor's new release may write anything; what we cannot read is shown, not fatal.
            logger.debug("unreadable record %r", record, exc_info=True)
            self._notice("unknown", str(record)[:MAX_NOTICE_CHARACTERS])
            return
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            text = self._stripper.feed(event.text)
            self._say(event if text is event.text else TextDelta(text))
            return
        event = _plain(event)
        if isinstance(event, Finished | Failed):
            self.verdict = event
            self.on_verdict()
            return
        if isinstance(event, Notice) and event.kind == "unknown":
            self._notice(event.kind, event.text)
            return
        if isinstance(event, Usage):
            self.usage = event
        elif isinstance(event, Started):
            self.started = event
        self._emit(event)

    def _say(self, piece: TextDelta) -> None:
        if not piece.text:
            return
        # In bytes, since many short strings would take many times their length.
        self._said += piece.text.encode(errors="replace")
        if len(self._said) > MAX_TEXT_BYTES:
            raise TooMuchText
        self._emit(piece)

    def _notice(self, kind: NoticeKind, text: str | bytes) -> None:
        self._notices += 1
        if self._notices <= MAX_NOTICES:
            text = text if isinstance(text, str) else text.decode(errors="replace")
            self._emit(Notice(kind=kind, text=text))


def _plain(event: Event) -> Event:
    """Return an event whose text holds no escape sequences."""
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
