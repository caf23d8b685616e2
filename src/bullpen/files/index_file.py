"""The index of somebody's repository, read without git: what is in it decides nothing but where we begin."""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

MOST_BYTES = 1024**3
SIGNATURE = b"DIRC"
STAGE, EXTENDED, LENGTH = 0x3000, 0x4000, 0x0FFF
SKIPPED, INTENDED = 0x4000, 0x2000
SPLIT = b"link"


class Entry(Struct, frozen=True):
    """A file in an index."""

    path: bytes
    mode: int
    size: int
    """Of the file as it was on the disk, modulo 2^32."""
    blob: bytes
    stat: bytes
    """As the index has it: ten numbers of four bytes, among them mode and size."""


class NotReadable(Exception):
    """An index that is damaged, or of a kind that we do not read."""


def read_index(file: Path, *, id_bytes: int) -> list[Entry]:
    """Return the files in an index; raises NotReadable."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise NotReadable("it is too large")
        data = file.read_bytes()
        signature, version, count = struct.unpack_from(">4sII", data)
        if signature != SIGNATURE or version not in (2, 3, 4):
            raise NotReadable("it is not an index")
        return list(_entries(data, version, count, id_bytes))
    except (OSError, struct.error, IndexError, ValueError) as error:
        raise NotReadable(str(error)) from error


def write_index(file: Path, entries: Sequence[Entry], *, id_bytes: int) -> None:
    """Write an index with some files, in the order they were read."""
    hasher = hashlib.sha1 if id_bytes == 20 else hashlib.sha256
    parts = [struct.pack(">4sII", SIGNATURE, 2, len(entries))]
    for entry in entries:
        length = 42 + id_bytes + len(entry.path)
        flags = struct.pack(">H", min(len(entry.path), LENGTH))
        parts.append(entry.stat + entry.blob + flags + entry.path + b"\0" * (8 - length % 8))
    data = b"".join(parts)
    file.write_bytes(data + hasher(data).digest())


def _entries(data: bytes, version: int, count: int, id_bytes: int) -> Iterator[Entry]:
    at, path = 12, b""
    end = len(data) - id_bytes
    for _ in range(count):
        stat, blob = data[at : at + 40], data[at + 40 : at + 40 + id_bytes]
        flags_at = at + 40 + id_bytes
        (flags,) = struct.unpack_from(">H", data, flags_at)
        more = struct.unpack_from(">H", data, flags_at + 2)[0] if flags & EXTENDED else 0
        name_at = flags_at + (4 if flags & EXTENDED else 2)
        if version == 4:
            dropped, name_at = _number(data, name_at)
            name_end = data.index(b"\0", name_at, end)
            path = path[: len(path) - dropped] + data[name_at:name_end]
            at = name_end + 1
        else:
            name_end = data.index(b"\0", name_at, end)
            path = data[name_at:name_end]
            at += (name_end - at) // 8 * 8 + 8
        mode, size = struct.unpack_from(">I8xI", stat, 24)
        if not flags & STAGE and not more & (SKIPPED | INTENDED):
            yield Entry(path, mode, size, blob, stat)
    if data[at : at + 4] == SPLIT:
        raise NotReadable("it is split")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number as version 4 writes it, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
