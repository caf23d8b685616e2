"""Shared by the renderers of all CLIs: the state of the turn, and the steps that each writes in its own format."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from bullpen.testing.agent.host import here
from bullpen.testing.agent.quick_json import from_json
from bullpen.testing.agent.streams import STDERR, STDIN, read_all, read_line, write_record, write_text

# Type checkers treat this name as true. Importing it from typing would cost more than the rest of the program.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from bullpen.testing.agent.sessions import Session
    from bullpen.testing.agent.turns import Turn

Record = dict[str, object]

CHARACTERS_PER_TOKEN = 4
KINDS = ("input", "output", "cached", "reasoning")
SHORT = 200


class ToolCall:
    """A tool call of the script, with Claude Code's tool names: Bash, Edit, Write, Read."""

    def __init__(
        self,
        name: str = "Bash",
        input: Record | None = None,  # noqa: A002 - the name in the script
        output: str = "",
        failed: bool = False,
        denied: bool = False,
        seconds: float = 0.0,
        runs: str = "",
    ) -> None:
        self.name = name
        self.input = input or {}
        self.output = output
        self.failed = failed or denied
        self.denied = denied
        self.seconds = seconds
        self.runs = runs

    def work(self) -> None:
        """Do what takes its time between the call and its result."""
        here.host.sleep(self.seconds)
        if self.runs:
            os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", self.runs], os.environ), 0)


class Renderer(ABC):
    """One turn in the stream format of one CLI. A method that returns a number ends the turn with that exit status."""

    STEPS = frozenset(
        {
            "answer",
            "ask",
            "compact",
            "echo",
            "error",
            "finish",
            "max_turns",
            "read",
            "retry",
            "say",
            "say_prompt_length",
        }
        | {"start", "think", "todo", "tool", "unknown_event", "usage"}
    )

    version: str
    home_variable = ""
    """The variable that names the CLI's home, where it keeps sessions. Empty: this one keeps none."""
    sigterm_exit: int | None = None
    """None: SIGTERM kills."""

    def __init__(self) -> None:
        self.reads_messages = False
        """Whether the prompt comes as a line of JSON, as with --input-format stream-json."""
        self.session: Session | None = None
        """Where the turn is recorded; None: the CLI's home is not named."""
        self.turn: Turn | None = None
        """Which turn of an agent with many this is; None: nothing is kept of it."""
        self.prompt = b""
        self.unread = b""
        self.said: list[str] = []
        self.tool_calls = 0
        self.retries = 0
        self.cost = 0.0
        self._tokens: dict[str, int] = {}
        self._started = self._finished = False
        self._began = time.monotonic()

    def read(self) -> None:
        """Read the prompt to its end, or the first message if messages are asked for."""
        if self.reads_messages:
            given, _, self.unread = read_line(STDIN).partition(b"\n")
            self.prompt = _text_of_message(given)
        else:
            given = self.prompt = read_all(STDIN)
        if self.turn is not None:
            self.turn.keep(given)
        if self.session is not None:
            self.session.ask(self._prompt_text())

    def open_session(self, arguments: list[str]) -> bool:
        """Take the session that the arguments ask for, and return whether that is possible."""
        home = here.host.environ.get(self.home_variable)
        if not home:
            return True
        from bullpen.testing.agent.sessions import SessionRefused

        try:
            self.session = self.session_in(home, arguments)
            return True
        except SessionRefused as refusal:
            self.refuse(str(refusal))
            return False

    def session_in(self, home: str, arguments: list[str]) -> "Session":
        """Return the session that the arguments ask for."""
        raise NotImplementedError

    def refuse(self, reason: str) -> None:
        """Say why a session cannot be continued."""
        write_text(f"{reason}\n", STDERR)

    def wait_for_end_of_input(self) -> None:
        """Wait as long as further messages may come."""
        if self.reads_messages:
            read_all(STDIN)

    def ask(self, command: str) -> int | None:
        """Ask before a command; in the streams of most CLIs nobody can be asked."""
        write_text(f"Nobody can be asked before: {command}\n", STDERR)
        return 1

    def start(self) -> None:
        """Open the stream, unless it is already open."""
        if not self._started:
            self._started = True
            for record in self.opening():
                write_record(record)

    def emit(self, record: Record) -> None:
        """Write one line of an open stream."""
        self.start()
        write_record(record)

    def finish(self) -> None:
        """Write the final events, unless they are already written."""
        if not self._finished:
            self._finished = True
            self.closing()
            if self.session is not None:
                self.session.end({kind: self.tokens(kind) for kind in KINDS})

    def interrupt(self) -> int:
        """Do what the CLI does on SIGINT and return its exit status."""
        return 0 if self._finished else self.interrupted()

    def answer(self) -> None:
        """Answer politely, no matter what the prompt is."""
        lines = self._prompt_text().strip().splitlines()
        self.say(f"Thank you. You said: {lines[-1][:SHORT]}" if lines else "Hello! You said nothing.")

    def echo(self, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Answer with the whole prompt."""
        self.say(self._prompt_text(), chunk=chunk, delay=delay)

    def say_prompt_length(self, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Answer with the number of bytes in the prompt."""
        self.say(str(len(self.prompt)), chunk=chunk, delay=delay)

    def usage(self, *, cost: float = 0.0, **tokens: int) -> None:
        """Set the usage of the turn: input, output, cached and reasoning tokens."""
        self.cost = cost
        self._tokens = tokens

    def unknown_event(self, /, **record: object) -> None:
        """Write a line as it is."""
        self.emit(record)

    def tool(self, **call: "Any") -> None:
        """Use a tool and write its result."""
        self.tool_calls += 1
        used = ToolCall(**call)
        self.use(used)
        if self.session is not None:
            self.session.used_tool(used.name, used.input, used.output)

    def compact(self, summary: str) -> None:
        """Replace the session's history with a summary, as a CLI does whose model's window is full."""
        if self.session is not None:
            self.session.compact(summary)

    def remember(self, text: str) -> None:
        """Keep a whole text of the answer."""
        self.said.append(text)
        if self.session is not None:
            self.session.reply(text)

    @abstractmethod
    def opening(self) -> list[Record]:
        """Return the lines before the answer."""

    @abstractmethod
    def closing(self) -> None:
        """Write the lines after the answer."""

    @abstractmethod
    def interrupted(self) -> int:
        """Do what the CLI does on SIGINT in an unfinished turn; return its exit status."""

    @abstractmethod
    def say(self, text: str, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Write a part of the answer."""

    @abstractmethod
    def think(self, text: str) -> None:
        """Write a thought."""

    @abstractmethod
    def use(self, call: ToolCall) -> None:
        """Write that a tool was used."""

    @abstractmethod
    def todo(self, items: list[Record]) -> None:
        """Write the plan: items of text and completed."""

    @abstractmethod
    def retry(self, cause: int | str, *, message: str = "", of: int = 0) -> None:
        """Write that a request failed and is repeated."""

    @abstractmethod
    def error(self, status: int, *, message: str = "") -> int:
        """End the turn as after this HTTP status."""

    @abstractmethod
    def max_turns(self) -> int:
        """End the turn as when its limit is reached."""

    def tokens(self, kind: str) -> int:
        """Return the scripted number of tokens, else an estimate; in a session with those of all turns before."""
        sizes = {"input": len(self.prompt), "output": sum(map(len, self.said))}
        before = 0 if self.session is None else self.session.used_before.get(kind, 0)
        return before + self._tokens.get(kind, sizes.get(kind, 0) // CHARACTERS_PER_TOKEN)

    def elapsed_ms(self) -> int:
        """Return the age of the turn."""
        return round((time.monotonic() - self._began) * 1000)

    def _prompt_text(self) -> str:
        return self.prompt.decode(errors="replace")


def pieces(text: str, chunk: int, delay: float) -> Iterator[str]:
    """Return the text in pieces of `chunk` characters, each after `delay` seconds; 0: in one piece."""
    size = chunk or len(text) or 1
    for start in range(0, len(text), size):
        here.host.sleep(delay)
        yield text[start : start + size]


def new_uuid() -> str:
    """Return a random UUID, without the ten milliseconds that importing uuid takes."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def timestamp() -> str:
    """Return the time as JavaScript writes it."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def _text_of_message(line: bytes) -> bytes:
    match from_json(line.decode(errors="replace")):
        case {"message": {"content": str(text)}}:
            return text.encode(errors="replace")
        case _:
            return b""
