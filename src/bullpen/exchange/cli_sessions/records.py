"""The records of a session's file, line by line. A line that cannot be read is counted, and the next one is read."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from bullpen.context.validation import milliseconds
from bullpen.errors import BullpenError
from bullpen.text.clean import clean_json

LONGEST_LINE = 32 * 1024 * 1024
"""In bytes. A longer line is left out: no message is that long, but a picture in one may be."""
LATEST_TIME = 253_402_300_799_999


class Records:
    """Reads one file from its beginning to where it ends now; a CLI may be writing to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.unreadable = 0
        """How many lines were left out: cut, garbage, too long."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield every record. One line at a time is in memory."""
        try:
            with _opened(self._path) as file:
                for line in self._lines(file, os.fstat(file.fileno()).st_size):
                    record = _decoded(line)
                    if record is None:
                        self.unreadable += 1
                    else:
                        yield record
        except OSError as error:
            raise BullpenError(f"{self._path} cannot be read: {error.strerror}. Nothing was written.") from error

    def _lines(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        left, is_too_long = size, False
        while left > 0 and (line := file.readline(min(LONGEST_LINE, left))):
            left -= len(line)
            is_whole = line.endswith(b"\n") or not left
            if not is_whole and not is_too_long:
                self.unreadable += 1
            if is_whole and not is_too_long and line.strip():
                yield line
            is_too_long = not is_whole


def time_of(record: dict[str, Any]) -> int:
    """Return when a record was written, in milliseconds since 1970; 0 if it does not say."""
    try:
        at = milliseconds(record.get("timestamp") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0
    return at if 0 <= at <= LATEST_TIME else 0


def text_of(record: dict[str, Any], name: str) -> str:
    """Return a field that should be a text; nothing if it is not one."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _opened(path: Path) -> BinaryIO:
    # Not blocking: somebody may have put a pipe there, and it would never open.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BullpenError(f"{path} is not a file with a session. Nothing was written.")
    return os.fdopen(handle, "rb")


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        record = msgspec.json.decode(line)
    except msgspec.DecodeError:
        record = _decoded_as_javascript_writes(line)
    except RecursionError:
        return None
    return record if isinstance(record, dict) else None


def _decoded_as_javascript_writes(line: bytes) -> object:
    """Return the value of a line with half an emoji in it; None if it has other faults."""
    if b"\\ud" not in line.lower():
        return None
    try:
        return clean_json(json.loads(line))
    except (ValueError, RecursionError):
        return None
