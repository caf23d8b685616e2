"""Which sessions of a CLI there are, and which one is meant."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from bullpen.agents.registry import agent_spec
from bullpen.agents.session_file import mark_of, session_home
from bullpen.agents.spec import AgentSpec
from bullpen.errors import BullpenError
from bullpen.exchange.cli_sessions.claude import ClaudeReader
from bullpen.exchange.cli_sessions.codex import CodexReader
from bullpen.exchange.cli_sessions.gemini import GeminiReader
from bullpen.exchange.cli_sessions.parts import SessionReader, SpokenMessage, messages_of
from bullpen.exchange.cli_sessions.qwen import QwenReader
from bullpen.memory import FileMark
from bullpen.text.clean import one_line
from bullpen.text.names import nearest
from bullpen.turn_events import Usage

READERS: Mapping[str, SessionReader] = {
    "claude": ClaudeReader(),
    "codex": CodexReader(),
    "gemini": GeminiReader(),
    "qwen": QwenReader(),
}
LAST = "last"
MOST_LISTED = 30
MOST_READ = 300
"""For a list: turns of bullpen leave sessions, too, and are not in it."""
SHORTEST_ID = 8
MOST_NAMED = 3
LONGEST_BEGINNING = 80


class CliSession(Struct, frozen=True, kw_only=True):
    """A session of a CLI, read."""

    cli: str
    id: str
    file: Path
    """The newest of its files."""
    folder: str
    """Where the CLI ran; empty if its files do not say."""
    messages: Sequence[SpokenMessage]
    unreadable: int
    """Lines of its files that were left out."""
    missing: str
    """The session that holds its beginning, if that is gone."""
    model: str
    """The model that answered last, where the CLI cannot continue with another one."""
    used: Usage | None
    """What was used in it, as the CLI counts it."""
    mark: FileMark
    """What its file was just before it was read."""


class ListedSession(Struct, frozen=True, kw_only=True):
    """A session in a list."""

    cli: str
    id: str
    short_id: str
    """As much of the id as no other session has."""
    last_at: int
    messages: int
    folder: str
    is_here: bool
    """Whether the CLI ran in the folder that the list is for."""
    beginning: str
    """The first words in it, on one line."""


class CliSessions:
    """The sessions of one CLI, by id; the newest first."""

    def __init__(self, cli: str) -> None:
        self.cli = cli
        self._reader = READERS[cli]
        self._spec = agent_spec(self._reader.agent)
        self._files = _files_by_id(self._reader, self._spec)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._files)

    def listed(self, here: Path) -> list[ListedSession]:
        """Return the newest sessions that a person began, those of this folder first."""
        return sorted(islice(self._of_people(here), MOST_LISTED), key=here_and_newest_first)

    def session(self, word: str, here: Path) -> CliSession:
        """Return the session with this id, or whose id begins so; "last" is the newest of this folder, or of all."""
        if word == LAST and (newest := self.listed(here)):
            word = newest[0].id
        fitting = [word] if word in self._files else self._beginning_so(word)
        if len(fitting) != 1:
            raise BullpenError(f"{self._not_found(word, fitting)} Nothing was written.")
        file = self._files[fitting[0]][-1]
        # First: what is added while we read is then known to be more than what was imported.
        mark = _mark_of(file)
        content = self._reader.read(fitting[0], self._files)
        return CliSession(
            cli=self.cli,
            id=fitting[0],
            file=file,
            folder=content.folder,
            messages=messages_of(content),
            unreadable=content.unreadable,
            missing=content.missing,
            model=content.model,
            used=content.used,
            mark=mark,
        )

    def _not_found(self, word: str, fitting: Sequence[str]) -> str:
        listing = f"`bullpen import --from {self.cli} --list` lists them."
        if not self._files:
            return f"There are no sessions of {self.cli}."
        if fitting:
            return f"{word!r} could be {', '.join(fitting[:MOST_NAMED])}{', …' if len(fitting) > MOST_NAMED else ''}."
        beginnings = {session_id[: len(word)]: session_id for session_id in self._files}
        close = [beginnings[beginning] for beginning in nearest(word, beginnings, limit=1)]
        meant = f" Did you mean {close[0]}?" if close else ""
        return f"{self.cli} has no session {word!r}.{meant} {listing}"

    def _beginning_so(self, word: str) -> list[str]:
        return [session_id for session_id in self._files if session_id.startswith(word)]

    def _of_people(self, here: Path) -> Iterator[ListedSession]:
        """Yield the sessions in which a person talked, not another agent or bullpen, whose prompts have headings."""
        headings = tuple(f"{heading}\n" for heading in self._spec.assembler.layout.headings)
        newest = sorted(self._files, key=lambda one: -_changed_at(self._files[one][-1]))
        for session_id in newest[:MOST_READ]:
            try:
                content = self._reader.read(session_id, self._files)
            except BullpenError:
                continue
            messages = messages_of(content)
            if content.is_own and messages and not messages[0].text.startswith(headings):
                yield self._in_a_list(session_id, content.folder, messages, here)

    def _in_a_list(self, session_id: str, folder: str, messages: Sequence[SpokenMessage], here: Path) -> ListedSession:
        return ListedSession(
            cli=self.cli,
            id=session_id,
            short_id=self._short_id(session_id),
            last_at=messages[-1].at,
            messages=len(messages),
            folder=folder,
            is_here=bool(folder) and Path(folder) == here,
            beginning=one_line(messages[0].text[: 4 * LONGEST_BEGINNING])[:LONGEST_BEGINNING],
        )

    def _short_id(self, session_id: str) -> str:
        lengths = range(SHORTEST_ID, len(session_id))
        unique = (length for length in lengths if self._beginning_so(session_id[:length]) == [session_id])
        return session_id[: next(unique, len(session_id))]


def here_and_newest_first(session: ListedSession) -> tuple[bool, int]:
    """Return what a list of sessions is sorted by."""
    return not session.is_here, -session.last_at


def _files_by_id(reader: SessionReader, spec: AgentSpec) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(_files(spec), key=lambda path: (path.name, _changed_at(path))):
        if session_id := reader.id_of(path):
            found.setdefault(session_id, []).append(path)
    return found


def _files(spec: AgentSpec) -> Iterable[Path]:
    # More than the id may be there: if a session has several files, something follows it in their names.
    sessions = spec.sessions
    return session_home(sessions, os.environ).glob(sessions.files.format(id="*")) if sessions else []


def _mark_of(path: Path) -> FileMark:
    try:
        # What is not a file, a reader refuses.
        return mark_of(path) if path.is_file() else FileMark(size=0, digest="")
    except OSError as error:
        raise BullpenError(f"{path} cannot be read: {error.strerror}. Nothing was written.") from error


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
