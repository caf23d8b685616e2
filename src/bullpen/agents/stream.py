"""From bytes to lines to records, within limits: a program may write anything, and any amount of it."""

import json
import re
from itertools import islice
from typing import Any

import msgspec

from bullpen.text.clean import clean_json

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_VALUES = 400_000
"""In one record. Eight megabytes of brackets would become a quarter of a gigabyte of lists."""

_STRING_OR_SIGN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{,]', re.DOTALL)

_decoder = msgspec.json.Decoder()


class LineSplitter:
    """Splits chunks into lines. What a line has over max_line_bytes is counted and dropped."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self.bytes_cut = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without their line ends."""
        first, *rest = chunk.split(b"\n")
        self._append(first)
        if not rest:
            return []
        lines = [self._take_line(), *map(self._whole, rest[:-1])]
        self._append(rest[-1])
        return lines

    def finish(self) -> list[bytes]:
        """Return what follows the last line end, if there is anything."""
        return [self._take_line()] if self._pieces else []

    def _whole(self, line: bytes) -> bytes:
        """Return a line that is within one chunk. Nearly all are, so they need not be joined from pieces."""
        if len(line) <= self._max_line_bytes:
            return line
        self._append(line)
        return self._take_line()

    def _append(self, piece: bytes) -> None:
        room = self._max_line_bytes - self._size
        if len(piece) > room:
            self.bytes_cut += len(piece) - room
            piece = piece[:room]
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)

    def _take_line(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line


def record_from(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object on a line, or None if there is none that can be read."""
    # An exception costs twenty times as much, and a program may write many lines that are not JSON.
    if line[:1] != b"{" and line.lstrip()[:1] != b"{":
        return None
    if len(line) > 2 * MAX_VALUES and _has_too_many_values(line):
        return None
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        record = _record_from_broken_text(line)
    except RecursionError:
        return None
    return record if isinstance(record, dict) else None


def _has_too_many_values(line: bytes) -> bool:
    """Return whether a record has more lists, objects and members than any CLI writes."""
    if line.count(b",") + line.count(b"[") + line.count(b"{") <= MAX_VALUES:
        return False
    # Most of them may be in strings, which may have any length.
    signs = (found for found in _STRING_OR_SIGN.finditer(line) if line[found.start()] != ord('"'))
    return next(islice(signs, MAX_VALUES, None), None) is not None


def _record_from_broken_text(line: bytes) -> object:
    """Return the record if only its text is invalid: bytes that are not UTF-8, or half an emoji."""
    if not line.rstrip().endswith(b"}") or (line.isascii() and b"\\u" not in line):
        return None
    try:
        return clean_json(json.loads(line.decode(errors="replace")))
    except (ValueError, RecursionError):
        return None
