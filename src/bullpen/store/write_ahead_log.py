"""The write-ahead log, checked before SQLite reads it: SQLite would silently ignore what is damaged or missing in it.

To SQLite, a page with a wrong checksum is the end of the log, as after a power cut, and no log is an empty one. But if
a process was only killed, the log's index (-shm) says how far it was written and how much of it was copied into the
database, and up to there nothing may be missing. https://www.sqlite.org/walformat.html
"""

import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
MAGIC = (0x377F0682, 0x377F0683)
MASK = 0xFFFFFFFF

# Of the index: the format of its two equal headers, where it says how many pages were copied into the database, and the
# byte that is locked while the log is in use.
INDEX_HEADER = struct.Struct("=IIIBBHIIIIIIII")
COPIED_PLACE = 96
LOCKED_BYTE = 128
FLOCK = "hhqqi"


LogState = Literal["usual", "empty", "removed", "cut"]
"""Empty is usual before the first write, and after SQLite has emptied it. Cut: emptied, and then written to."""


class Witness(Struct, frozen=True):
    """How far a log was written, according to its index."""

    frames: int
    copied: int
    """How many of them are in the database, too."""
    salts: tuple[int, int]
    frame_bytes: int
    is_in_use: bool
    is_old: bool
    """Whether it is from before this machine's last start: a power cut may have lost any part of it, or of the log."""


class OpenLog:
    """The log of an open connection, which others could take away meanwhile. It is asked before every write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # SQLite does not lock the log itself, so it may be opened and closed.
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(self._handle)
        self._identity = status.st_dev, status.st_ino
        self._is_new = not self._begins()
        """Whether nobody has written to it yet. A power cut may have left anything in it."""

    def close(self) -> None:
        """Close it. Closing twice is harmless."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def state(self) -> LogState:
        """Return what has become of it."""
        try:
            status = self._path.stat()
        except OSError:
            return "removed"
        if (status.st_dev, status.st_ino) != self._identity:
            return "removed"
        if status.st_size == 0:
            return "empty"
        begins = self._begins()
        self._is_new = self._is_new and not begins
        return "usual" if begins or self._is_new else "cut"

    def _begins(self) -> bool:
        return os.pread(self._handle, 4, 0).strip(b"\0") != b""


def damage(path: Path) -> str:
    """Return what is wrong with the log of a database, or nothing. No connection of this process may be open."""
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    witness = _witness(index)
    problem = "" if witness is None else _problem(log, witness)
    # Another process may have changed both meanwhile: then nothing is wrong with them.
    return problem if problem and _witness(index) == witness else ""


def _problem(log: Path, witness: Witness) -> str:
    size: int | None = None
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        pass
    except OSError:
        return ""
    if witness.is_in_use:
        return _problem_in_use(log.name, size, witness)
    if witness.frames == 0:
        return ""
    if not size:
        return _lost(log.name, size, witness)
    return "" if witness.is_old else _damaged(log, witness)


def _problem_in_use(name: str, size: int | None, witness: Witness) -> str:
    """Return whether another process has the log open, but under this name there is not what it writes to."""
    if size is not None and size >= _size(witness.copied, witness.frames, witness.frame_bytes):
        return ""
    what = "was removed" if size is None else "was cut off"
    return f"its log {name} {what} while another process has it open. Close that process, which may still save it"


def _size(copied: int, frames: int, frame_bytes: int) -> int:
    """Return how long a log must be. It may be shorter if all of it is in the database."""
    return HEADER_BYTES + frames * frame_bytes if frames > copied else 0


def _lost(name: str, size: int | None, witness: Witness) -> str:
    """Return that the log is not there, if the database does not have all that was in it.

    After a power cut, a log without content may be a new one. But its name can only be missing if it was removed:
    SQLite creates it before the index and removes it after the index, and file systems keep the order of names.
    """
    if witness.copied >= witness.frames or (size is not None and witness.is_old):
        return ""
    state, pages = "is missing" if size is None else "is empty", witness.frames - witness.copied
    return f"its log {name} {state}, which had {pages:,} pages of its newest data"


def _damaged(log: Path, witness: Witness) -> str:
    try:
        last = _last_sound_frame(log.read_bytes(), witness)
    except OSError:
        return ""
    if last is None:
        return f"its log {log.name} is not the one that was written last"
    if last >= witness.frames:
        return ""
    return f"its log {log.name} has {witness.frames:,} pages, but cannot be read from page {last + 1:,} on"


def _witness(index: Path) -> Witness | None:
    """Return what an index says; None if it says nothing."""
    try:
        handle = os.open(index, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        content = os.read(handle, COPIED_PLACE + 4)
        is_old = os.fstat(handle).st_mtime < _last_start()
        return _sound_witness(content, is_in_use=_is_in_use(handle), is_old=is_old)
    finally:
        os.close(handle)


def _last_start() -> float:
    """Return when this machine was started, in seconds since 1970."""
    return time.time() - time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _is_in_use(handle: int) -> bool:
    if sys.platform != "linux":
        return False
    question = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0)
    answer: bytes = fcntl.fcntl(handle, fcntl.F_GETLK, question + bytes(8))
    return bool(struct.unpack_from(FLOCK, answer)[0] != fcntl.F_UNLCK)


def _sound_witness(content: bytes, *, is_in_use: bool, is_old: bool) -> Witness | None:
    header = content[: INDEX_HEADER.size]
    if len(content) != COPIED_PLACE + 4 or not content.startswith(header * 2):
        return None
    page_size, frames, *_, check0, check1 = INDEX_HEADER.unpack(header)[5:]
    if _checksum((0, 0), struct.unpack_from("=10I", header)) != (check0, check1):
        return None
    page_bytes = 65536 if page_size == 1 else page_size
    # Salts are stored as in the log, regardless of the machine's byte order.
    salt0, salt1 = struct.unpack_from(">II", header, 32)
    (copied,) = struct.unpack_from("=I", content, COPIED_PLACE)
    return Witness(
        frames=frames,
        copied=copied,
        salts=(salt0, salt1),
        frame_bytes=FRAME_HEADER_BYTES + page_bytes,
        is_in_use=is_in_use,
        is_old=is_old,
    )


def _last_sound_frame(log: bytes, witness: Witness) -> int | None:
    """Return how many pages of a log are sound, or None if it is not the witness's log."""
    header = log[:HEADER_BYTES]
    if len(header) < HEADER_BYTES:
        return 0
    magic, *_, salt0, salt1, check0, check1 = struct.unpack(">8I", header)
    order = ">" if magic & 1 else "<"
    if magic not in MAGIC or _checksum((0, 0), struct.unpack_from(f"{order}6I", header)) != (check0, check1):
        return 0
    return _sound_frames(log, witness, order, (check0, check1)) if (salt0, salt1) == witness.salts else None


def _sound_frames(log: bytes, witness: Witness, order: str, check: tuple[int, int]) -> int:
    words = struct.Struct(f"{order}{(witness.frame_bytes - FRAME_HEADER_BYTES) // 4}I")
    frames = min(witness.frames, (len(log) - HEADER_BYTES) // witness.frame_bytes)
    for number in range(frames):
        start = HEADER_BYTES + number * witness.frame_bytes
        *_, salt0, salt1, check0, check1 = struct.unpack_from(">6I", log, start)
        check = _checksum(check, struct.unpack_from(f"{order}2I", log, start))
        check = _checksum(check, words.unpack_from(log, start + FRAME_HEADER_BYTES))
        if (salt0, salt1) != witness.salts or (check0, check1) != check:
            return number
    return frames


def _checksum(before: tuple[int, int], words: Iterable[int]) -> tuple[int, int]:
    first, second = before
    pairs = iter(words)
    for word, other in zip(pairs, pairs, strict=True):
        # The first sum stays small enough to be masked once, at the end.
        first += word + second
        second = (second + other + first) & MASK
    return first & MASK, second
