"""The process's own stdin, stdout and stderr, unbuffered: what a step writes has left when the next step begins."""

import os

from bullpen.testing.agent.quick_json import to_json

STDIN, STDOUT, STDERR = 0, 1, 2

# A pipe takes this many bytes whole or not at all.
ATOMIC_BYTES = os.pathconf("/", "PC_PIPE_BUF")
READ_BYTES = 1 << 20


def read_all(fd: int) -> bytes:
    """Return everything up to the end; a closed file descriptor has nothing."""
    pieces = []
    try:
        while piece := os.read(fd, READ_BYTES):
            pieces.append(piece)
    except OSError:
        pass
    return b"".join(pieces)


def read_line(fd: int) -> bytes:
    """Return everything up to the first line end, or to the end."""
    pieces = []
    try:
        while piece := os.read(fd, READ_BYTES):
            pieces.append(piece)
            if piece.endswith(b"\n"):
                break
    except OSError:
        pass
    return b"".join(pieces)


def write(data: bytes, fd: int = STDOUT) -> None:
    """Write all the bytes, however slowly they are taken."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def write_text(text: str, fd: int = STDOUT) -> None:
    """Write a text as it is."""
    write(text.encode(errors="replace"), fd)


def write_record(record: dict[str, object]) -> None:
    """Write one line of JSON. An interrupt comes before it or after it, never within."""
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
    """Let go of a stream. Nothing stands in its place, so that no file opened later is taken for it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, fd)
    os.close(nothing)
