"""Sessions of Gemini CLI: tmp/PROJECT/chats/session-TIME-ID.jsonl, messages and changes to those before."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bullpen.errors import BullpenError
from bullpen.exchange.cli_sessions.google_parts import agent_parts, called, person_parts
from bullpen.exchange.cli_sessions.parts import Part, SessionContent
from bullpen.exchange.cli_sessions.records import Records, text_of, time_of

CANCELLED = "Request cancelled."
SUMMARY = "<state_snapshot>"
"""How the message begins that replaces a long history; the agent then thanks for it."""
LONGEST_PATH = 4096


class GeminiReader:
    """Keeps the messages by their ids, as the CLI does: one may be written again, or be taken back."""

    agent = "google-gemini"

    def id_of(self, path: Path) -> str:
        """Return the id in the first record; the file's name has only the beginning of it."""
        try:
            first = next(iter(islice(Records(path), 1)), {})
        except BullpenError:
            return ""
        return text_of(first, "sessionId") if first.get("kind", "main") == "main" else ""

    def read(self, session_id: str, files: Mapping[str, Sequence[Path]]) -> SessionContent:
        """Return what is in all files of this id, each of which continues the one before it."""
        session, unreadable = _Messages(), 0
        for path in files[session_id]:
            records = Records(path)
            for record in records:
                session.apply(record)
            unreadable += records.unreadable
        parts = [part for said in session.messages.values() for part in said]
        return SessionContent(parts=parts, folder=_folder(files[session_id][-1]), unreadable=unreadable)


class _Messages:
    def __init__(self) -> None:
        self.messages: dict[str, tuple[Part, ...]] = {}
        self._times: dict[str, int] = {}
        """When each was first said: resuming gives all of them the time of that moment."""

    def apply(self, record: dict[str, Any]) -> None:
        match record:
            case {"$rewindTo": str(target)}:
                self._rewind(target)
            case {"$set": {"messages": list(messages)}} if any(map(_is_summary, messages)):
                self._keep_new(messages)
            case {"$set": {"messages": list(messages)}}:
                self._replace(messages)
            case {"id": str()}:
                self._keep(record)

    def _replace(self, messages: list[Any]) -> None:
        """Take a new list. One without words is only the first half of resuming: the list follows, or is damaged."""
        before, self.messages = self.messages, {}
        for message in messages:
            self._keep(message)
        if not any(self.messages.values()):
            self.messages = before | self.messages

    def _rewind(self, target: str) -> None:
        ids = list(self.messages)
        for message_id in ids[ids.index(target) :] if target in self.messages else []:
            del self.messages[message_id]

    def _keep_new(self, messages: list[Any]) -> None:
        """Keep what the CLI has replaced by a summary, and of its new list only what is neither there nor a copy."""
        said = {_words(parts) for parts in self.messages.values()}
        previous: Any = None
        for message in messages:
            is_about_summary = _is_summary(message) or _is_summary(previous)
            previous = message
            match message:
                case {"id": str(message_id)} if not is_about_summary and message_id not in self.messages:
                    self._keep(message)
                    if _words(self.messages[message_id]) in said:
                        del self.messages[message_id]

    def _keep(self, message: Any) -> None:
        match message:
            case {"id": str(message_id)}:
                at = self._times.setdefault(message_id, time_of(message))
                self.messages[message_id] = tuple(_parts(message, at))


def _parts(message: dict[str, Any], at: int) -> Iterator[Part]:
    match message:
        case {"type": "user", "content": contents}:
            for part in person_parts(contents, at):
                is_command = part.kind == "person" and part.text.startswith(("/", "?"))
                yield Part(kind="command", text=part.text, at=at) if is_command else part
        case {"type": "gemini", "toolCalls": [_, *_] as calls}:
            yield from agent_parts(message.get("content"), at, calls=False)
            for call in calls:
                yield from _call(call, at)
        case {"type": "gemini", "content": contents}:
            yield from agent_parts(contents, at)
        case {"type": "info", "content": str(text)} if text == CANCELLED:
            yield Part(kind="interruption", at=at)


def _is_summary(message: Any) -> bool:
    match message:
        case {"type": "user", "content": [{"text": str(text)}, *_]}:
            return text.startswith(SUMMARY)
        case _:
            return False


def _words(parts: tuple[Part, ...]) -> tuple[str, ...]:
    return tuple(part.text for part in parts)


def _call(call: Any, at: int) -> Iterator[Part]:
    match call:
        case {"name": str(name), "id": str(tool_id)}:
            yield called(name, call, at)
            if call.get("status") in ("error", "cancelled"):
                yield Part(kind="failure", at=at, tool_id=tool_id)


def _folder(path: Path) -> str:
    """Return the folder of the project, which is in a file of its own."""
    try:
        with path.parent.with_name(".project_root").open(encoding="utf-8", errors="replace") as file:
            return file.read(LONGEST_PATH).strip()
    except OSError:
        return ""
