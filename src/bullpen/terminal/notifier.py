"""Notifier: tells a person at a terminal that it is their turn, by the window's title, the bell and the desktop.

The desktop is told only while another window is in front. A terminal that does not report that is taken to be in front
while the person presses keys.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress

from bullpen.text.clean import one_line
from bullpen.text.safe import printable

FOCUS_REPORTS_ON, FOCUS_REPORTS_OFF = "\x1b[?1004h", "\x1b[?1004l"
SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
AWAY_SECONDS = 10.0
MOST_CHARACTERS = 200


def give_title_back() -> None:
    """Give the window the title that it had before, if there is still a window."""
    with suppress(OSError, ValueError):
        if sys.stdout.isatty():
            sys.stdout.write(RESTORE_TITLE)
            sys.stdout.flush()


class Notifier:
    """What one terminal was told, and whether it is in front."""

    def __init__(self, name: str, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.is_in_front: bool | None = None
        """None: the terminal has not reported it."""
        self._name = name
        self._write = write
        self._clock = clock
        self._pressed_at = clock()
        self._shown = ""
        self._told: tuple[str, ...] = ()

    def key_pressed(self) -> None:
        """Note that the person is there."""
        self._pressed_at = self._clock()

    def show(self, sign: str, count: int, *texts: str) -> None:
        """Show the sign of a state and how many things wait for the person; tell them of a new one if they are away."""
        title = f"{sign} {f'({count}) ' if count else ''}{self._name} · bullpen"
        if title != self._shown:
            self._shown = title
            self._write(f"\x1b]2;{_safe(title)}\x07")
        new = [text for text in texts if text and text not in self._told]
        if new and self._is_away:
            # Terminals know one of the two sequences, and ignore the other. A semicolon ends a part of both.
            text = _safe(new[0]).replace(";", ",")
            self._write(f"\a\x1b]9;bullpen: {text}\x07\x1b]777;notify;bullpen;{text}\x07")
        self._told = texts

    @property
    def _is_away(self) -> bool:
        if self.is_in_front is not None:
            return not self.is_in_front
        return self._clock() - self._pressed_at > AWAY_SECONDS


def _safe(text: str) -> str:
    """Return a text that cannot end the sequence it is in."""
    return printable(one_line(text))[:MOST_CHARACTERS]
