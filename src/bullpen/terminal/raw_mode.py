"""A terminal that sends every key at once, does not echo, and marks what is pasted; restored afterwards."""

import contextlib
import os
import select
import sys
import termios
from collections.abc import Iterator

from bullpen.terminal.keys import KeyReader, Pressed, Typed
from bullpen.terminal.notifier import FOCUS_REPORTS_OFF, FOCUS_REPORTS_ON, RESTORE_TITLE, SAVE_TITLE

PASTE_MARKS_ON, PASTE_MARKS_OFF, SHOW_CURSOR = "\x1b[?2004h", "\x1b[?2004l", "\x1b[?25h"
ENTER = PASTE_MARKS_ON + FOCUS_REPORTS_ON + SAVE_TITLE
LEAVE = RESTORE_TITLE + FOCUS_REPORTS_OFF + PASTE_MARKS_OFF + SHOW_CURSOR
READ_BYTES = 64 * 1024
INPUT_FLAGS, LOCAL_FLAGS, CONTROL_CHARACTERS = 0, 3, 6


class RawTerminal:
    """The keys of one terminal. Ctrl-C and Ctrl-Z stay signals."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._before = termios.tcgetattr(file)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Receive every key for a while."""
        self.enter()
        try:
            yield
        finally:
            self.restore()

    def enter(self) -> None:
        """Receive every key at once."""
        mode = termios.tcgetattr(self._file)
        mode[INPUT_FLAGS] &= ~termios.IXON
        mode[LOCAL_FLAGS] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        mode[CONTROL_CHARACTERS] = list(mode[CONTROL_CHARACTERS])
        mode[CONTROL_CHARACTERS][termios.VMIN], mode[CONTROL_CHARACTERS][termios.VTIME] = 1, 0
        termios.tcsetattr(self._file, termios.TCSADRAIN, mode)
        _write(ENTER)

    def restore(self) -> None:
        """Restore the terminal's settings."""
        # The terminal may be gone, and nobody may be reading what we write.
        with contextlib.suppress(OSError, termios.error, ValueError):
            _write(LEAVE)
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def restore_at_once(self) -> None:
        """Restore the settings without waiting for anybody to read, and without a stream that may be in use."""
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._file, termios.TCSANOW, self._before)
        output = sys.stdout.fileno()
        with contextlib.suppress(OSError):
            os.set_blocking(output, False)
            try:
                os.write(output, LEAVE.encode())
            finally:
                os.set_blocking(output, True)


def typed_ahead(file: int) -> str:
    """Return what was typed before anybody read it, without the keys for a new line that nothing follows."""
    if not os.isatty(file):
        return ""
    before = termios.tcgetattr(file)
    mode = [*before[:LOCAL_FLAGS], before[LOCAL_FLAGS] & ~termios.ICANON, *before[LOCAL_FLAGS + 1 :]]
    termios.tcsetattr(file, termios.TCSANOW, mode)
    keys = KeyReader()
    try:
        written = ""
        while select.select([file], [], [], 0)[0] and (data := os.read(file, READ_BYTES)):
            for key in keys.feed(data):
                written += key.text if isinstance(key, Typed) else "\n" if key == Pressed("enter") else ""
    finally:
        termios.tcsetattr(file, termios.TCSANOW, before)
    return "\n".join(line for line in written.split("\n") if line.strip())


def is_terminal() -> bool:
    """Return whether input and output are a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
