"""InputArea: a terminal with an input line at the bottom, and everything else above it."""

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple, TextIO

from bullpen.terminal.cells import clusters, cut, width
from bullpen.terminal.line_editor import LineEditor
from bullpen.terminal.page import terminal_columns
from bullpen.text.safe import printable

CONTINUES = "… "
"""Before each line of the text but the first, which has the prompt."""
BLOCK_ROWS = 10
TAB = "    "
LONGEST_CLUSTER = 64


class Row(NamedTuple):
    """A row on the screen, and the part of the text that it shows."""

    before: str
    start: int
    end: int


class _Block(NamedTuple):
    """A part of a line of the text."""

    line_start: int
    line_end: int
    number: int


class InputRows:
    """Lays out a text with a prompt in a number of columns."""

    def __init__(self, text: str, prompt: str, columns: int) -> None:
        self._text = text
        self._prompt = prompt
        self._columns = max(columns, 1)

    def around(self, cursor: int, most: int) -> tuple[list[str], tuple[int, int]]:
        """Return at most `most` rows around the cursor, and the row and column of the cursor in them."""
        block = self._block_at(cursor)
        rows = list(self._rows(block))
        at = next((number for number, row in enumerate(rows) if cursor <= row.end), len(rows) - 1)
        first = last = block
        while at < most and (before := self._before(first)) is not None:
            first = before
            above = list(self._rows(first))
            rows, at = above + rows, at + len(above)
        while len(rows) - at <= most and (after := self._after(last)) is not None:
            last = after
            rows += self._rows(last)
        column = width(rows[at].before) + width(self._shown(rows[at].start, min(cursor, rows[at].end)))
        top = max(0, min(at - most // 2, len(rows) - most))
        shown = [row.before + self._shown(row.start, row.end) for row in rows[top : top + most]]
        return shown, (at - top, column)

    def _shown(self, start: int, end: int) -> str:
        return printable(self._text[start:end]).replace("\t", TAB)

    def _rows(self, block: _Block) -> Iterator[Row]:
        """Yield the rows of a block."""
        start, end = self._start(block), self._start(block._replace(number=block.number + 1))
        before = "" if block.number else self._line_prompt(block)
        for row_end in self._row_ends(start, end, self._columns - width(before)):
            yield Row(before, start, row_end)
            start, before = row_end, ""
        yield Row(before, start, end)

    def _row_ends(self, start: int, end: int, room: int) -> Iterator[int]:
        """Yield where rows end within a part of the text; `room` is the width of the first one."""
        part = self._text[start:end]
        if part.isascii() and "\t" not in part:
            yield from range(start + max(room, 0), end, self._columns)
            return
        place = start
        for cluster, size in clusters(printable(part).replace("\t", "\ufffd")):
            columns = len(TAB) if self._text[place] == "\t" else size
            if room < min(columns, self._columns):
                yield place
                room = self._columns
            room -= columns
            place += len(cluster)

    def _line_prompt(self, block: _Block) -> str:
        return CONTINUES if block.line_start else self._prompt

    def _block_at(self, place: int) -> _Block:
        """Return the block that contains a place in the text; the end of a block belongs to it."""
        start = self._text.rfind("\n", 0, place) + 1
        end = self._text.find("\n", place)
        line = _Block(start, len(self._text) if end < 0 else end, 0)
        return line._replace(number=max(0, (place - self._first_end(line) - 1) // self._size + 1))

    def _before(self, block: _Block) -> _Block | None:
        if block.number:
            return block._replace(number=block.number - 1)
        return self._block_at(block.line_start - 1) if block.line_start else None

    def _after(self, block: _Block) -> _Block | None:
        if self._start(block._replace(number=block.number + 1)) < block.line_end:
            return block._replace(number=block.number + 1)
        return self._block_at(block.line_end + 1) if block.line_end < len(self._text) else None

    def _start(self, block: _Block) -> int:
        """Return where a block starts, which is where the one before it ends."""
        if block.number == 0:
            return block.line_start
        place = self._first_end(block) + (block.number - 1) * self._size
        return self._whole(place) if place < block.line_end else block.line_end

    def _whole(self, place: int) -> int:
        """Return where the character around a place begins, as people see it, if that is near."""
        for start in range(place, place - min(LONGEST_CLUSTER, self._size), -1):
            if width(self._text[start]) and self._text[start - 1] != "\u200d":
                return start
        return place

    def _first_end(self, block: _Block) -> int:
        """Return where the first block of a line ends: less fits into its first row."""
        return block.line_start + max(self._size - width(self._line_prompt(block)), 1)

    @property
    def _size(self) -> int:
        return self._columns * BLOCK_ROWS


HIDE, SHOW_CURSOR, CLEAR_BELOW, CLEAR_ALL = "\x1b[?25l", "\x1b[?25h", "\x1b[J", "\x1b[2J\x1b[H"
MOST_ROWS = 10
"""Rows of the input that are shown; a longer one is shown around the cursor."""
_OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class InputArea:
    """Redraws the status, the prompt and the line around everything that is written."""

    def __init__(self, editor: LineEditor, prompt: str, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._editor = editor
        self._prompt = prompt
        self._status = ""
        self._hint = ""
        self._column = 0
        """Where the text above ends: 0 if its last line is whole."""
        self._cursor_row = -1
        """In which row of the area the cursor is; -1 while the area is not there."""
        self._laid_out: tuple[object, ...] = ()
        self._layout = "", 0
        """The area as it was last laid out, for what, and in which row the cursor is: agents write more than people."""

    @property
    def columns(self) -> int | None:
        """How wide a line may be."""
        return terminal_columns(self._stream)

    def write(self, text: str) -> None:
        """Write above the area."""
        if not text:
            return
        out = self._erased() + text
        plain = _OUR_COLOURS.sub("", text) if "\x1b" in text else text
        last = plain.rpartition("\n")
        self._column = width(last[2]) if last[1] else self._column + width(last[2])
        self._put(out + self._drawn())

    def status(self, text: str) -> None:
        """Set the line above the prompt; the text is already safe."""
        if text != self._status:
            out = self._erased()
            self._status = text
            self._put(out + self._drawn())

    def draw(self, *, hint: str = "") -> None:
        """Draw the area as it should be now, with a hint about what is typed."""
        self._hint = hint
        self._put(self._erased() + self._drawn())

    def clear_screen(self) -> None:
        """Begin with an empty screen."""
        self._cursor_row, self._column = -1, 0
        self._put(CLEAR_ALL + self._drawn())

    def leave(self, *, keep: str = "") -> None:
        """Remove the area; what was sent stays as a line above."""
        out = self._erased() + ("\n" if self._column else "") + keep
        self._column = 0
        self._put(out)

    def forget(self) -> None:
        """Forget what the terminal shows, because something else has been written, such as after Ctrl-Z."""
        self._cursor_row, self._column = -1, 0

    def _erased(self) -> str:
        """Return what removes the area and moves back to where the text above ends."""
        if self._cursor_row < 0:
            return ""
        up = f"\x1b[{self._cursor_row}A" if self._cursor_row else ""
        self._cursor_row = -1
        to_text = f"\x1b[A\x1b[{self._column + 1}G" if self._column else ""
        return f"{HIDE}\r{up}{CLEAR_BELOW}{to_text}"

    def _drawn(self) -> str:
        """Return what draws the area below the text, with the cursor where the person writes."""
        editor, columns = self._editor, self.columns or 80
        state = columns, editor.text, editor.cursor, *editor.choices, self._status, self._hint
        if state != self._laid_out:
            self._laid_out, self._layout = state, self._lay_out(columns)
        area, self._cursor_row = self._layout
        return f"\n{area}" if self._column else area

    def _lay_out(self, columns: int) -> tuple[str, int]:
        """Return what draws the area, and in which row of it the cursor is."""
        rows, (row, column) = InputRows(self._editor.text, self._prompt, columns).around(self._editor.cursor, MOST_ROWS)
        above = [f"\x1b[2m{cut(line, columns)}\x1b[0m" for line in self._above()]
        lines = [*above, *rows]
        cursor_row = len(above) + row
        up = len(lines) - 1 - cursor_row
        move = (f"\x1b[{up}A" if up else "") + f"\x1b[{column + 1}G"
        return "\n".join(lines) + move + SHOW_CURSOR, cursor_row

    def _above(self) -> list[str]:
        choices = "  ".join(choice.strip() for choice in self._editor.choices)
        return [line for line in (self._status, printable(choices) or self._hint) if line]

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
