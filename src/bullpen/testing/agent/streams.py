"""The process's own stdin, stdout and stderr, unbuffered: a step's output is sent before the next step starts."""

import os

from bullpen.testing.agent.host import here
from bullpen.testing.agent.quick_json import to_json

STDIN, STDOUT, STDERR = 0, 1, 2

# A write of this many bytes to a pipe is atomic.
ATOMIC_BYTES = os.pathconf("/", "PC_PIPE_BUF")
READ_BYTES = 1 << 20


def read_all(fd: int) -> bytes:
    """Return everything up to the end; nothing from a closed file descriptor."""
    pieces = []
    try:
        while piece := here.host.read(fd, READ_BYTES):
            pieces.append(piece)
    except OSError:
        pass
    return b"".join(pieces)


def read_line(fd: int) -> bytes:
    """Return everything up to the first line end, or to the end."""
    pieces = []
    try:
        while piece := here.host.read(fd, READ_BYTES):
            pieces.append(piece)
            if piece.endswith(b"\n"):
                break
    except OSError:
        pass
    return b"".join(pieces)


def write(data: bytes, fd: int = STDOUT) -> None:
    """Write all the bytes, even to a slow reader."""
    rest = memoryview(data)
    while rest:
        rest = rest[here.host.write(rest, fd) :]


def write_text(text: str, fd: int = STDOUT) -> None:
    """Write a text as it is."""
    write(text.encode(errors="replace"), fd)


def write_record(record: dict[str, object]) -> None:
    """Write one line of JSON. An interrupt comes before or after it, never in the middle."""
    # Half a surrogate pair stays an escape, as in JavaScript.
    line = to_json(record).encode(errors="backslashreplace") + b"\n"
    if len(line) <= ATOMIC_BYTES:
        write(line)
    else:
        _write_uninterrupted(line)


def _write_uninterrupted(line: bytes) -> None:
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        write(line)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def close(fd: int) -> None:
    """Close a stream. Its descriptor stays reserved, so that no file opened later is mistaken for it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, fd)
    os.close(nothing)
