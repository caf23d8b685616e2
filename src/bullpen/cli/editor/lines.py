"""Lines that an editor writes. It imports little: the handshake waits for it."""

import os

READ_BYTES = 64 * 1024
LONGEST_LINE = 64 * 1024 * 1024
"""Of a longer one only the beginning is kept: a prompt may have whole files in it."""
KEPT_OF_LONGER = 1024


class Lines:
    """Lines that come in pieces, each looked at once."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete; of those that are too long only the beginning."""
        *ends, rest = data.split(b"\n")
        found = []
        for end in ends:
            self._add(end)
            line = b"".join(self._pieces)
            found.append(line if self._size <= LONGEST_LINE else line[:KEPT_OF_LONGER])
            self._pieces, self._size = [], 0
        self._add(rest)
        return [line for line in found if line.strip()]

    def _add(self, piece: bytes) -> None:
        if self._size <= LONGEST_LINE:
            self._pieces.append(piece)
        self._size += len(piece)


def read_some(source: int) -> bytes:
    """Return what there is to read; nothing at the end."""
    try:
        return os.read(source, READ_BYTES)
    except OSError:
        return b""


def write_all(target: int, data: bytes) -> bool:
    """Write all of it; return whether that was possible."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(target, rest) :]
    except OSError:
        return False
    return True
