"""TurnLog: all that a turn said and wrote, numbered, so that a line that broke is continued where it broke."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.turn_events import Event

SEGMENT_BYTES = 256 * 1024
MOST_SEGMENT_BYTES = 64 * 1024 * 1024
"""With its last line, which may be long."""
MOST_BYTES = 256 * 1024 * 1024
"""Of all lines of a turn. What is beyond is not told; how the turn ended always is."""
LENGTH_BYTES = 4


class Ran(Struct, frozen=True, tag="ran"):
    """The command line that runs now."""

    command: tuple[str, ...]


class Said(Struct, frozen=True, tag="said"):
    """An event of the agent's turn."""

    event: Event


class Wrote(Struct, frozen=True, tag="wrote"):
    """A piece of what the program wrote."""

    data: bytes


class BeganAgain(Struct, frozen=True, tag="again"):
    """The turn runs in a new session: the worker could not continue the one that was ordered."""

    reason: str


class Listens(Struct, frozen=True, tag="listens"):
    """The agent can be told something while it works."""


class Took(Struct, frozen=True, tag="took"):
    """The agent was told something."""

    word: str
    is_taken: bool
    """Whether its model gets it in this turn."""


class Called(Struct, frozen=True, tag="called"):
    """The agent calls a tool of its turn."""

    call: int
    """Counts the calls of the turn."""
    tool: str
    arguments: dict[str, Any]


class Uncalled(Struct, frozen=True, tag="uncalled"):
    """Nobody waits any more for what a call returns."""

    call: int


Line = Ran | Said | Wrote | BeganAgain | Listens | Took | Called | Uncalled

_decoder = msgspec.msgpack.Decoder[Line](Line)


class TurnLog:
    """The lines of one turn, the first with the number 1, packed as they come."""

    def __init__(self) -> None:
        self.count = 0
        self._bytes = 0
        self._segments: list[tuple[int, bytes]] = []
        """Each with the number of its first line."""
        self._open: list[bytes] = []
        self._open_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more is told."""
        return self._bytes > MOST_BYTES

    def add(self, line: Line) -> None:
        """Add the next line."""
        encoded = msgspec.msgpack.encode(line)
        self._bytes += len(encoded)
        if self.is_full:
            return
        self.count += 1
        self._open.append(encoded)
        self._open_bytes += len(encoded)
        if self._open_bytes >= SEGMENT_BYTES:
            self._close_segment()

    def after(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Yield the encoded lines after a number, each with its own; more may come while this is read."""
        while number < self.count:
            first, lines = self._part_with(number + 1)
            for place, encoded in enumerate(lines[number + 1 - first :], start=number + 1):
                number = place
                yield place, encoded

    def packed(self) -> list[bytes]:
        """Return all lines, for `unpacked`."""
        if self._open:
            self._close_segment()
        return [segment for _, segment in self._segments]

    def _part_with(self, number: int) -> tuple[int, list[bytes]]:
        for first, segment in reversed(self._segments):
            if first <= number < self.count + 1 - len(self._open):
                return first, list(_split(zlib.decompress(segment)))
        return self.count + 1 - len(self._open), list(self._open)

    def _close_segment(self) -> None:
        first = self.count + 1 - len(self._open)
        self._segments.append((first, zlib.compress(b"".join(map(framed, self._open)), level=1)))
        self._open, self._open_bytes = [], 0


def unpacked(segments: Iterable[bytes]) -> Iterator[tuple[int, Line]]:
    """Yield all lines of a turn, each with its number; msgspec.MsgspecError is raised for anything else."""
    number, room = 0, MOST_BYTES
    for segment in segments:
        data = _unpacked_segment(segment)
        room -= len(data)
        if room < -MOST_SEGMENT_BYTES:
            raise msgspec.DecodeError(f"more than {MOST_BYTES:,} bytes of lines")
        for encoded in _split(data):
            number += 1
            yield number, read_line(encoded)


def _unpacked_segment(segment: bytes) -> bytes:
    """Return the lines in a segment of a worker, unless that says something else, or more than fits into memory."""
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(segment, MOST_SEGMENT_BYTES)
    except zlib.error as error:
        raise msgspec.DecodeError(str(error)) from error
    if not unpacking.eof:
        raise msgspec.DecodeError(f"a segment of lines ends early, or is larger than {MOST_SEGMENT_BYTES:,} bytes")
    return data


def read_line(encoded: bytes) -> Line:
    """Return a line; msgspec.MsgspecError is raised for anything else."""
    line: Line = _decoder.decode(encoded)
    return line


def framed(data: bytes) -> bytes:
    """Return data after its length."""
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def _split(data: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(data):
        end = place + LENGTH_BYTES + int.from_bytes(data[place : place + LENGTH_BYTES], "big")
        yield data[place + LENGTH_BYTES : end]
        place = end
