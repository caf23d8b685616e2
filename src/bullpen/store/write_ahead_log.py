"""The write-ahead log, checked before SQLite reads it: SQLite would silently ignore what is damaged in it.

To SQLite, a page with a wrong checksum is the end of the log, as after a power cut. But if a process was only killed,
the log's index (-shm) says how far it was written, and up to there nothing may be missing.
https://www.sqlite.org/walformat.html
"""

import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
MAGIC = (0x377F0682, 0x377F0683)
MASK = 0xFFFFFFFF

# Of the index: the format of its two equal headers, and the byte that is locked while the log is in use.
INDEX_HEADER = struct.Struct("=IIIBBHIIIIIIII")
LOCKED_BYTE = 128
FLOCK = "hhqqi"


class Witness(Struct, frozen=True):
    """How far a log was written, according to its index."""

    frames: int
    salts: tuple[int, int]
    frame_bytes: int


def damage(path: Path) -> str:
    """Return what is damaged in the log of a database, or nothing. No connection of this process may be open."""
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    witness = _witness(index)
    if witness is None or witness.frames == 0:
        return ""
    try:
        last = _last_sound_frame(log.read_bytes(), witness)
    except OSError:
        return ""
    # A writer may have restarted the log meanwhile.
    if last is None or last >= witness.frames or _witness(index) != witness:
        return ""
    return (
        f"its log {log.name} has {witness.frames:,} pages, but cannot be read from page {last + 1:,} on. Back up all"
        f" its files; then remove {index.name} to open it without those pages"
    )


def _witness(index: Path) -> Witness | None:
    """Return what an index says, unless it is in use: then SQLite does not read the log again.

    An index from before this machine's last start says nothing: a power cut may have lost any part of the log.
    """
    try:
        handle = os.open(index, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        headers = os.read(handle, 2 * INDEX_HEADER.size)
        if _is_in_use(handle) or os.fstat(handle).st_mtime < _last_start():
            return None
        return _sound_witness(headers)
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


def _sound_witness(headers: bytes) -> Witness | None:
    header = headers[: INDEX_HEADER.size]
    if len(headers) != 2 * INDEX_HEADER.size or headers != header * 2:
        return None
    page_size, frames, *_, check0, check1 = INDEX_HEADER.unpack(header)[5:]
    if _checksum((0, 0), struct.unpack_from("=10I", header)) != (check0, check1):
        return None
    page_bytes = 65536 if page_size == 1 else page_size
    # Salts are stored as in the log, regardless of the machine's byte order.
    salt0, salt1 = struct.unpack_from(">II", header, 32)
    return Witness(frames, (salt0, salt1), FRAME_HEADER_BYTES + page_bytes)


def _last_sound_frame(log: bytes, witness: Witness) -> int | None:
    """Return how many pages of a log are sound, or None if it is not the witness's log."""
    header = log[:HEADER_BYTES]
    if not any(header) and witness.salts not in _salts(log, witness):
        # SQLite had truncated it, and the start of what was written since did not reach the disk.
        return None
    if len(header) < HEADER_BYTES:
        return 0
    magic, *_, salt0, salt1, check0, check1 = struct.unpack(">8I", header)
    order = ">" if magic & 1 else "<"
    if magic not in MAGIC or _checksum((0, 0), struct.unpack_from(f"{order}6I", header)) != (check0, check1):
        return 0
    return _sound_frames(log, witness, order, (check0, check1)) if (salt0, salt1) == witness.salts else None


def _salts(log: bytes, witness: Witness) -> set[tuple[int, int]]:
    places = range(HEADER_BYTES + 8, len(log) - 8, witness.frame_bytes)
    return {(salts[0], salts[1]) for salts in (struct.unpack_from(">II", log, place) for place in places)}


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
