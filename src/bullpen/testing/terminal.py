"""A program in its own terminal, and what a person would see there. It supports only what bullpen writes."""

import codecs
import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

PATIENCE_SECONDS = 60.0
_PIECE = re.compile(
    r"\x1b\[(?P<arguments>[0-9;?]*)(?P<final>[@-~])|\x1b\](?P<told>[^\x07\x1b]*)\x07|(?P<letter>.)", re.DOTALL
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*|\][^\x07\x1b]*)?\Z")


class Screen:
    """Rows of cells, a cursor, and the few sequences that move it. Unknown sequences are kept in `unknown`."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.columns = columns
        self.rows = rows
        self.unknown: list[str] = []
        self.gone: list[str] = []
        """The lines that have scrolled off the top."""
        self.title = ""
        self.notifications: list[str] = []
        self.bells = 0
        self.row = self.column = 0
        self._cells = [[" "] * columns for _ in range(rows)]
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        """The text of each row, without trailing spaces."""
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        """Everything that was shown and not erased."""
        return "\n".join([*self.gone, *self.lines]).rstrip()

    def feed(self, text: str) -> None:
        """Show the output of a program."""
        text = self._rest + text
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished[0] if unfinished else ""
        for piece in _PIECE.finditer(text[: len(text) - len(self._rest)]):
            if piece["letter"] is not None:
                self._letter(piece["letter"])
            elif piece["told"] is not None:
                self._tell(piece["told"])
            else:
                self._sequence(piece["arguments"], piece["final"])

    def _letter(self, letter: str) -> None:
        if letter == "\n":
            self._line_feed()
        elif letter == "\r":
            self.column = 0
        elif letter == "\a":
            self.bells += 1
        elif unicodedata.category(letter) == "Cc":
            self.unknown.append(letter)
        else:
            self._put(letter)

    def _tell(self, told: str) -> None:
        """Take a title or a notification."""
        kind, _, text = told.partition(";")
        if kind == "2":
            self.title = text
        elif kind == "9":
            self.notifications.append(text)
        elif kind != "777":
            self.unknown.append(f"\x1b]{told}\x07")

    def _put(self, letter: str) -> None:
        size = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if self.column + size > self.columns:
            self.column = 0
            self._line_feed()
        self._cells[self.row][self.column] = letter
        if size == 2:
            self._cells[self.row][self.column + 1] = ""
        self.column += size

    def _line_feed(self) -> None:
        if self.row + 1 < self.rows:
            self.row += 1
            return
        self.gone.append("".join(self._cells.pop(0)).rstrip())
        self._cells.append([" "] * self.columns)

    def _sequence(self, arguments: str, final: str) -> None:
        number = int(arguments) if arguments.isdecimal() else 1
        match final:
            case "A":
                self.row = max(0, self.row - number)
            case "G":
                self.column = min(number, self.columns) - 1
            case "J" if arguments in ("", "0"):
                self._cells[self.row][self.column :] = [" "] * (self.columns - self.column)
                self._cells[self.row + 1 :] = [[" "] * self.columns for _ in range(self.rows - self.row - 1)]
            case "J" if arguments == "2":
                self._cells = [[" "] * self.columns for _ in range(self.rows)]
            case "H" if not arguments:
                self.row = self.column = 0
            case "m":
                pass
            case "h" | "l" if arguments in ("?25", "?1004", "?2004"):
                pass
            case "t" if arguments in ("22;2", "23;2"):
                pass
            case _:
                self.unknown.append(f"\x1b[{arguments}{final}")


class Terminal:
    """A process in a terminal that we control. Everything it has started ends with us."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        columns: int = 80,
        rows: int = 24,
        start: "Callable[..., subprocess.Popen[bytes]]" = subprocess.Popen,
    ) -> None:
        self.screen = Screen(columns, rows)
        self.written = b""
        """All output of the process."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._file, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = start(
            command,
            stdin=child,
            stdout=child,
            stderr=child,
            env={**env, "TERM": "xterm-256color"},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(child)
        os.set_blocking(self._file, False)

    def press(self, text: str) -> None:
        """Send keys, and read the output meanwhile, so that neither side blocks the other."""
        unsent = text.encode()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while unsent:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(unsent)} bytes were not read; the screen:\n{self.screen.text}")
            select.select([self._file], [self._file], [], 0.2)
            with contextlib.suppress(BlockingIOError):
                unsent = unsent[os.write(self._file, unsent) :]
            self._read(0)

    def wait_for(self, *texts: str) -> None:
        """Wait until all of these are shown."""
        self.wait_until(lambda: all(text in self.screen.text for text in texts), what=f"{texts}")

    def wait_until(self, is_so: Callable[[], bool], *, what: str = "it") -> None:
        """Wait until a condition is true; if that takes too long, raise an error with the screen."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > deadline or not self._read(0.2):
                raise TimeoutError(f"waited too long for {what}; the screen:\n{self.screen.text}")

    def leave(self) -> int:
        """Wait until the process has ended; return its exit code."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._read(0.2) and time.monotonic() < deadline:
            pass
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self, seconds: float) -> bool:
        """Read the available output; return False at the end."""
        if not select.select([self._file], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._file, 65536)
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.written += data
        self.screen.feed(self._decoder.decode(data))
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._file)
