"""Text and bytes as they are on disk: compressed, after a checksum, so that a changed byte is noticed."""

import zlib

from bullpen.store.base import PackedStream

CHECKSUM_BYTES = 4
MAX_STREAM_BYTES = 4 * 1024 * 1024
"""Of a packed stream."""
MAX_RAW_STREAM_BYTES = 64 * 1024 * 1024
"""Of its content: one line repeated for hours compresses to nothing, but would fill its reader's memory."""

# Without header and trailer: our checksum does more than theirs, since it also covers what deflate ignores.
RAW_DEFLATE = -zlib.MAX_WBITS
LEVEL = 6
# Compressing shorter text gains nothing.
SMALLEST_PACKED_TEXT = 64

PIECE_BYTES = 64 * 1024
# zlib may hold back one block of 16 Ki symbols, of at most four bytes each.
HELD_BACK_BYTES = 2 * PIECE_BYTES


class DamagedData(Exception):
    """Stored data that was damaged or changed."""


def packed(data: bytes) -> bytes:
    """Return data as it is stored."""
    return _checked(zlib.compress(data, level=LEVEL, wbits=RAW_DEFLATE))


def unpacked(blob: object) -> bytes:
    """Return what was packed, or raise DamagedData."""
    if not isinstance(blob, bytes):
        raise DamagedData(f"a packed value is of type {type(blob).__name__}")
    deflated = blob[CHECKSUM_BYTES:]
    if blob[:CHECKSUM_BYTES] != _checksum(deflated):
        raise DamagedData("a checksum does not match")
    try:
        return zlib.decompress(deflated, wbits=RAW_DEFLATE)
    except zlib.error as error:
        raise DamagedData(str(error)) from error


def unpacked_if_short(blob: bytes, most: int) -> bytes | None:
    """Return what was packed if it is short enough, and else None; or raise DamagedData."""
    deflated = blob[CHECKSUM_BYTES:]
    if blob[:CHECKSUM_BYTES] != _checksum(deflated):
        raise DamagedData("a checksum does not match")
    inflating = zlib.decompressobj(wbits=RAW_DEFLATE)
    try:
        data = inflating.decompress(deflated, most + 1)
    except zlib.error as error:
        raise DamagedData(str(error)) from error
    if len(data) > most:
        return None
    if not inflating.eof:
        raise DamagedData("a packed value is not complete")
    return data


def packed_size(most: int) -> int:
    """Return how large that number of bytes is at most when it is packed, even if nothing in them repeats."""
    return most + most // 1000 + 64


def packed_text(text: str) -> str | bytes:
    """Return text as a message keeps it: packed if that is shorter."""
    data = text.encode()
    if len(data) < SMALLEST_PACKED_TEXT:
        return text
    blob = packed(data)
    return blob if len(blob) < len(data) else text


def unpacked_text(stored: object) -> str:
    """Return the text that packed_text was given, or raise DamagedData."""
    if isinstance(stored, str):
        return stored
    try:
        return unpacked(stored).decode()
    except UnicodeDecodeError as error:
        raise DamagedData(str(error)) from error


class StreamPacker:
    """Packs a stream piece by piece, in bounded memory. What exceeds the limit is left out."""

    def __init__(self, max_bytes: int = MAX_STREAM_BYTES, max_raw_bytes: int = MAX_RAW_STREAM_BYTES) -> None:
        self._room = max_bytes - CHECKSUM_BYTES - HELD_BACK_BYTES
        self._raw_room = max_raw_bytes
        self._compressor = zlib.compressobj(LEVEL, wbits=RAW_DEFLATE)
        self._deflated = bytearray()
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        """Add the next piece."""
        for start in range(0, len(data), PIECE_BYTES):
            if self._is_cut:
                return
            self._add(data[start : start + PIECE_BYTES])

    def finish(self) -> PackedStream:
        """Return the stream; nothing can be added after that."""
        self._deflated += self._compressor.flush()
        return PackedStream(data=_checked(bytes(self._deflated)), is_cut=self._is_cut)

    def _add(self, piece: bytes) -> None:
        self._is_cut = len(self._deflated) + len(piece) > self._room or len(piece) > self._raw_room
        if not self._is_cut:
            self._raw_room -= len(piece)
            self._deflated += self._compressor.compress(piece)


def _checked(deflated: bytes) -> bytes:
    return _checksum(deflated) + deflated


def _checksum(deflated: bytes) -> bytes:
    return zlib.crc32(deflated).to_bytes(CHECKSUM_BYTES, "big")
