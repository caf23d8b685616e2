"""InputArea: a terminal with a line to write in at its bottom, and everything else above it."""

import re
import sys
from typing import TextIO

from bullpen.terminal.cells import cut, width
from bullpen.terminal.input_rows import InputRows
from bullpen.terminal.line_editor import LineEditor
from bullpen.terminal.page import terminal_columns
from bullpen.text.safe import printable

HIDE, SHOW_CURSOR, CLEAR_BELOW, CLEAR_ALL = "\x1b[?25l", "\x1b[?25h", "\x1b[J", "\x1b[2J\x1b[H"
MOST_ROWS = 10
"""Rows of the input that are shown; a longer one is shown around the cursor."""
_OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class InputArea:
    """Draws the status, the prompt and the line anew around everything that is written."""

    def __init__(self, editor: LineEditor, prompt: str, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._editor = editor
        self._prompt = prompt
        self._status = ""
        self._column = 0
        """Where the text above ends: 0 if its last line is whole."""
        self._cursor_row = -1
        """In which row of the area the cursor is; -1 while the area is not there."""

    @property
    def columns(self) -> int | None:
        """How wide a line may be."""
        return terminal_columns(self._stream)

    def write(self, text: str) -> None:
        """Write above the area."""
        if not text:
            return
        out = self._erased() + text
        last = _OUR_COLOURS.sub("", text).rpartition("\n")
        self._column = width(last[2]) if last[1] else self._column + width(last[2])
        self._put(out + self._drawn())

    def status(self, text: str) -> None:
        """Set the line above the prompt, which is safe already."""
        if text != self._status:
            out = self._erased()
            self._status = text
            self._put(out + self._drawn())

    def draw(self) -> None:
        """Draw the area as it should be now."""
        self._put(self._erased() + self._drawn())

    def clear_screen(self) -> None:
        """Begin with an empty screen."""
        self._cursor_row, self._column = -1, 0
        self._put(CLEAR_ALL + self._drawn())

    def leave(self, *, keep: str = "") -> None:
        """Take the area away; what was sent stays as a line above."""
        out = self._erased() + ("\n" if self._column else "") + keep
        self._column = 0
        self._put(out)

    def forget(self) -> None:
        """Learn that the terminal shows something else now, such as after a stop."""
        self._cursor_row, self._column = -1, 0

    def _erased(self) -> str:
        """Return what takes the area away and goes back to where the text above ends."""
        if self._cursor_row < 0:
            return ""
        up = f"\x1b[{self._cursor_row}A" if self._cursor_row else ""
        self._cursor_row = -1
        to_text = f"\x1b[A\x1b[{self._column + 1}G" if self._column else ""
        return f"{HIDE}\r{up}{CLEAR_BELOW}{to_text}"

    def _drawn(self) -> str:
        """Return what draws the area below the text, with the cursor where the person writes."""
        columns = self.columns or 80
        rows, (row, column) = InputRows(self._editor.text, self._prompt, columns).around(self._editor.cursor, MOST_ROWS)
        above = [f"\x1b[2m{cut(line, columns)}\x1b[0m" for line in self._above()]
        lines = [*above, *rows]
        self._cursor_row = len(above) + row
        up = len(lines) - 1 - self._cursor_row
        move = (f"\x1b[{up}A" if up else "") + f"\x1b[{column + 1}G"
        return ("\n" if self._column else "") + "\n".join(lines) + move + SHOW_CURSOR

    def _above(self) -> list[str]:
        choices = "  ".join(choice.strip() for choice in self._editor.choices)
        return [line for line in (self._status, printable(choices)) if line]

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
