"""A program at a terminal of its own, timed by what it writes there."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Self

PATIENCE_SECONDS = 60.0
ROWS, COLUMNS = 40, 120


class Terminal:
    """Starts a program, reads what it writes, and ends it."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, cwd=folder, start_new_session=True, env=environment
        )
        os.close(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Some start others that do the work.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._main)

    def read_until(self, mark: bytes) -> None:
        """Read until the program has written something."""
        written = b""
        while mark not in written:
            data = self._some()
            if not data:
                raise RuntimeError(f"the program never wrote {mark!r}, but {written[-500:]!r}")
            written += data

    def leave(self, key: bytes) -> None:
        """Press a key, and wait until the program has ended."""
        os.write(self._main, key)
        while self._some():
            pass
        self._process.wait(PATIENCE_SECONDS)

    def _some(self) -> bytes:
        if not select.select([self._main], [], [], PATIENCE_SECONDS)[0]:
            return b""
        try:
            return os.read(self._main, 65536)
        except OSError:
            return b""
