"""Which sessions of a CLI there are, and which one is meant."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from bullpen.agents.registry import agent_spec
from bullpen.agents.spec import AgentSpec
from bullpen.errors import BullpenError
from bullpen.exchange.cli_sessions.claude import ClaudeReader
from bullpen.exchange.cli_sessions.codex import CodexReader
from bullpen.exchange.cli_sessions.gemini import GeminiReader
from bullpen.exchange.cli_sessions.parts import SessionContent, SessionReader, SpokenMessage, messages_of
from bullpen.exchange.cli_sessions.qwen import QwenReader
from bullpen.text.clean import one_line
from bullpen.text.names import nearest

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
    content: SessionContent
    messages: Sequence[SpokenMessage]

    @property
    def last_at(self) -> int:
        """When something was said last."""
        return self.messages[-1].at if self.messages else 0

    @property
    def beginning(self) -> str:
        """The first words in it, on one line."""
        return one_line(self.messages[0].text[: 4 * LONGEST_BEGINNING])[:LONGEST_BEGINNING] if self.messages else ""

    def is_in(self, folder: Path) -> bool:
        """Return whether the CLI ran in this folder."""
        return bool(self.content.folder) and Path(self.content.folder) == folder


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

    def listed(self, here: Path) -> list[CliSession]:
        """Return the newest sessions that a person began, those of this folder first."""
        sessions = islice(filter(self._is_a_persons, self._newest()), MOST_LISTED)
        return sorted(sessions, key=lambda session: (not session.is_in(here), -session.last_at))

    def session(self, word: str, here: Path) -> CliSession:
        """Return the session with this id, or whose id begins so; "last" is the newest of this folder, or of all."""
        if word == LAST and (newest := self.listed(here)):
            return newest[0]
        fitting = [word] if word in self._files else self._beginning_so(word)
        if len(fitting) != 1:
            raise BullpenError(f"{self._not_found(word, fitting)} Nothing was written.")
        return self._read(fitting[0])

    def short_id(self, session_id: str) -> str:
        """Return as much of an id as no other session has."""
        lengths = range(SHORTEST_ID, len(session_id))
        unique = (length for length in lengths if self._beginning_so(session_id[:length]) == [session_id])
        return session_id[: next(unique, len(session_id))]

    def _not_found(self, word: str, fitting: Sequence[str]) -> str:
        listing = f"`bullpen import --from {self.cli} --list` lists them."
        if not self._files:
            return f"There are no sessions of {self.cli} in {_home(self._spec)}."
        if fitting:
            return f"{word!r} could be {', '.join(fitting[:MOST_NAMED])}{', …' if len(fitting) > MOST_NAMED else ''}."
        beginnings = {session_id[: len(word)]: session_id for session_id in self._files}
        close = [beginnings[beginning] for beginning in nearest(word, beginnings, limit=1)]
        meant = f" Did you mean {close[0]}?" if close else ""
        return f"{self.cli} has no session {word!r}.{meant} {listing}"

    def _beginning_so(self, word: str) -> list[str]:
        return [session_id for session_id in self._files if session_id.startswith(word)]

    def _newest(self) -> Iterator[CliSession]:
        ids = sorted(self._files, key=lambda one: -_changed_at(self._files[one][-1]))
        for session_id in ids[:MOST_READ]:
            try:
                yield self._read(session_id)
            except BullpenError:
                continue

    def _read(self, session_id: str) -> CliSession:
        content = self._reader.read(session_id, self._files)
        return CliSession(
            cli=self.cli,
            id=session_id,
            file=self._files[session_id][-1],
            content=content,
            messages=messages_of(content),
        )

    def _is_a_persons(self, session: CliSession) -> bool:
        """Return whether a person talked in it: neither another agent nor bullpen, whose prompts have headings."""
        headings = tuple(f"{heading}\n" for heading in self._spec.assembler.layout.headings)
        return session.content.is_own and bool(session.messages) and not session.messages[0].text.startswith(headings)


def _files_by_id(reader: SessionReader, spec: AgentSpec) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(_files(spec), key=lambda path: (path.name, _changed_at(path))):
        if session_id := reader.id_of(path):
            found.setdefault(session_id, []).append(path)
    return found


def _files(spec: AgentSpec) -> Iterable[Path]:
    # More than the id may be there: if a session has several files, something follows it in their names.
    return _home(spec).glob(spec.sessions.files.replace("{id}", "*")) if spec.sessions else []


def _home(spec: AgentSpec) -> Path:
    if spec.sessions is None:
        return Path.home()
    elsewhere = os.environ.get(spec.sessions.home_variable)
    return Path(elsewhere) if elsewhere else Path.home() / spec.sessions.home


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
