"""A session as a CLI keeps it: a file of records that only grows, and beside it what a model would have been asked.

There is one only where the CLI's own variable names its home: nothing is ever written to a person's own folder.
"""

# pathlib is slow to import.
# ruff: noqa: PTH103, PTH120

import os
from abc import ABC, abstractmethod

from bullpen.testing.agent.quick_json import from_json, to_json
from bullpen.testing.agent.streams import read_all, write

Record = dict[str, object]

NOBODY_ELSE = 0o600


class SessionRefused(Exception):
    """The session that was asked for cannot be continued, in the CLI's own words."""


class Session(ABC):
    """The session of one turn. `file` has its records, and `file` with .asked instead of .jsonl what a model got."""

    id: str
    file: str
    system: str = ""
    """The system text that the model gets."""
    base: str = ""
    """The file of the session whose history this one begins with."""
    used_before: dict[str, int]
    """The tokens of all earlier turns together."""

    def ask(self, prompt: str) -> None:
        """Record the prompt when it arrives, and what the model is asked: the whole session so far with it."""
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        self.begin()
        self.add(self.person(prompt))
        asked: Record = {"session": self.id, "system": self.system, "messages": self.messages()}
        _append(self.asked_file, asked)

    def add(self, *records: Record) -> None:
        """Append records to the file."""
        for record in records:
            _append(self.file, record)

    def records(self) -> list[Record]:
        """Return what is in the file, without lines that are damaged."""
        return records_in(self.file)

    @property
    def asked_file(self) -> str:
        """The file with a line for each request to the model."""
        return self.file.removesuffix(".jsonl") + ".asked"

    @abstractmethod
    def begin(self) -> None:
        """Write what comes before the prompt."""

    @abstractmethod
    def person(self, text: str) -> Record:
        """Return the record of a prompt."""

    @abstractmethod
    def reply(self, text: str) -> None:
        """Record a text of the model."""

    @abstractmethod
    def used_tool(self, name: str, given: Record, output: str) -> None:
        """Record a tool, and what came out of it."""

    @abstractmethod
    def compact(self, summary: str) -> None:
        """Replace the history with a summary."""

    @abstractmethod
    def messages(self) -> list[Record]:
        """Return the history as the model gets it: role and text of each message."""

    @abstractmethod
    def end(self, used: dict[str, int]) -> None:
        """Record the tokens of all turns together."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Let others use the session."""


def records_in(file: str) -> list[Record]:
    """Return the records of a file, without lines that are damaged; nothing if there is no file."""
    found = []
    for line in text_of(file).splitlines():
        try:
            record = from_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def text_of(file: str) -> str:
    """Return what is in a file; nothing if there is none."""
    try:
        opened = os.open(file, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return read_all(opened).decode(errors="replace")
    finally:
        os.close(opened)


def text_in(content: object) -> str:
    """Return the text of a message's content: itself, or its blocks."""
    match content:
        case str():
            return content
        case list():
            return "\n".join(filter(None, map(text_in, content)))
        case {"text": str(text)}:
            return text
        case {"content": inner}:
            return text_in(inner)
        case _:
            return ""


def _append(file: str, record: Record) -> None:
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, NOBODY_ELSE)
    try:
        write(to_json(record).encode(errors="backslashreplace") + b"\n", opened)
    finally:
        os.close(opened)
