"""What a session consists of, the same for every CLI, and how it reads as messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from bullpen.text.clean import clean_text, one_line
from bullpen.text.numbers import counted
from bullpen.text.tool_words import asked_of
from bullpen.turn_events import Usage

MOST_TOOLS_NAMED = 12
LONGEST_ABOUT = 100
INTERRUPTED = "(interrupted)"

Kind = Literal["person", "command", "agent", "tool", "failure", "interruption"]


class Part(Struct, frozen=True, kw_only=True, gc=False):
    """One thing in a session: what was said, or done."""

    kind: Kind
    """A command is what a person typed to the CLI itself; a failure says that a tool failed."""
    text: str = ""
    at: int = 0
    """Milliseconds since 1970; 0 if the file does not say."""
    tool_id: str = ""


class SessionContent(Struct, kw_only=True):
    """What a reader found in the files of a session."""

    parts: Sequence[Part]
    folder: str = ""
    """Where the CLI ran."""
    unreadable: int = 0
    """Lines that were left out because they could not be read."""
    missing: str = ""
    """The id of the session that holds the beginning of this one, if it is not there."""
    model: str = ""
    """The model that answered last, where the CLI cannot continue with another one."""
    used: Usage | None = None
    """What was used in it, as the CLI counts it: a turn that continues it reports this and its own together."""
    is_own: bool = True
    """Whether a person began it; if not, an agent did, for a part of its own work."""


class SessionReader(Protocol):
    """Everything that only one CLI's format knows."""

    agent: str
    """The agent type."""

    def id_of(self, path: Path) -> str:
        """Return the id of the session that a file belongs to; nothing if it is not a session's."""
        ...

    def read(self, session_id: str, files: Mapping[str, Sequence[Path]]) -> SessionContent:
        """Return what is in a session. The files of all sessions are known by id, the oldest first."""
        ...


class SpokenMessage(Struct, frozen=True, kw_only=True):
    """One message of a session."""

    by_person: bool
    text: str
    at: int


def person(text: str, at: int) -> Iterator[Part]:
    """Yield what a person said, if it is anything."""
    if text.strip():
        yield Part(kind="person", text=text.strip(), at=at)


def agent(text: str, at: int) -> Iterator[Part]:
    """Yield what the agent said, if it is anything."""
    if text.strip():
        yield Part(kind="agent", text=text.strip("\n").rstrip(), at=at)


def tool(tool_id: str, name: str, given: Mapping[str, Any], at: int) -> Part:
    """Return a call of a tool: its name, and what tells most of what it was given."""
    about = " ".join(one_line(asked_of(given)[: 4 * LONGEST_ABOUT]).split())
    about = about if len(about) <= LONGEST_ABOUT else f"{about[: LONGEST_ABOUT - 1].rstrip()}…"
    return Part(kind="tool", text=f"{one_line(name)} {about}".strip(), at=at, tool_id=tool_id)


def messages_of(content: SessionContent) -> list[SpokenMessage]:
    """Return a session as messages: one of the agent for all that it said and did before the person spoke again."""
    failed = {part.tool_id for part in content.parts if part.kind == "failure"}
    reply = _Reply(content.folder, failed)
    messages, command, latest = list[SpokenMessage](), None, 0
    for part in content.parts:
        latest = max(latest, part.at)
        if part.kind in ("person", "command"):
            messages += reply.taken()
            # A command that the agent did not answer was for the CLI alone.
            command = part if part.kind == "command" else None
            if command is None:
                messages.append(SpokenMessage(by_person=True, text=clean_text(part.text), at=latest))
        elif part.kind != "failure":
            if command is not None:
                messages.append(SpokenMessage(by_person=True, text=clean_text(command.text), at=command.at or latest))
                command = None
            reply.add(part, latest)
    return [*messages, *reply.taken()]


class _Reply:
    """The agent's message, while it grows."""

    def __init__(self, folder: str, failed: set[str]) -> None:
        self._folder = folder.rstrip("/")
        self._failed = failed
        self._paragraphs: list[str] = []
        self._tools: list[Part] = []
        self._at = 0

    def add(self, part: Part, at: int) -> None:
        self._at = at
        if part.kind == "tool":
            self._tools.append(part)
            return
        self._end_tools()
        self._paragraphs.append(part.text if part.kind == "agent" else INTERRUPTED)

    def taken(self) -> list[SpokenMessage]:
        """Return the message, if there is one, and begin another."""
        self._end_tools()
        text = "\n\n".join(self._paragraphs)
        self._paragraphs = []
        return [SpokenMessage(by_person=False, text=clean_text(text), at=self._at)] if text else []

    def _end_tools(self) -> None:
        if self._tools:
            self._paragraphs.append(_tools_line(list(map(self._named, self._tools))))
            self._tools = []

    def _named(self, used: Part) -> str:
        words = used.text.replace(f"{self._folder}/", "") if self._folder else used.text
        words = f"{words.removesuffix(self._folder)}." if self._folder and words.endswith(self._folder) else words
        return f"{words} (failed)" if used.tool_id in self._failed else words


def _tools_line(names: Sequence[str]) -> str:
    """Return one line for tools that were used one after the other."""
    named: Iterable[str] = names[:MOST_TOOLS_NAMED]
    more = len(names) - MOST_TOOLS_NAMED
    words = "; ".join([*named, *([f"and {more} more"] if more > 0 else [])])
    return f"(used {counted(len(names), 'tool')}: {words})"
