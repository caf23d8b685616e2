"""Wrapper: an agent's words as they come, made safe, indented and wrapped, so that none of its lines looks like ours.

No escape sequence gets through, even if it is split over pieces, and every character is read once.
"""

import math
import re
from collections.abc import Iterator

from bullpen.terminal.cells import clusters, width
from bullpen.text.safe import printable

TAB_COLUMNS = 4
NARROWEST = 20
LONGEST_CLUSTER = 64
"""Characters that are kept together; a letter can have any number of accents."""

_WORD = re.compile(r"[^ \t\r\n]+|[ \t\r\n]")
_LINE = re.compile(r"[^\t\r\n]+|[\t\r\n]")


class Wrapper:
    """Turns pieces of a text into what can be written now. Where lines are wrapped, half a word is held back."""

    def __init__(self, columns: int | None, indent: str = "  ") -> None:
        self.column = 0
        """Where the next character goes; 0 is the start of a line. If lines are not wrapped, only 0 is exact."""
        self._right = None if columns is None else max(columns, NARROWEST)
        self._indent = indent
        self._room = math.inf if self._right is None else self._right - len(indent)
        self._word: list[str] = []
        self._word_width = 0
        self._last = ""
        """The last character of the word as people see it: the next piece may still belong to it."""
        self._after_return = False

    def feed(self, piece: str) -> str:
        """Return the text that can be written now."""
        parts = (_LINE if self._right is None else _WORD).findall(piece)
        out = "".join(shown for part in parts for shown in self._part(part))
        return out if self._right is not None else out + self.flush()

    def flush(self) -> str:
        """Return what was held back."""
        last, self._last = self._last, ""
        before = self._keep(last, width(last)) if last else ""
        return before + self._written_word()

    def end_line(self) -> str:
        """Return what ends the line, if one was started."""
        out = self.flush()
        if not self.column:
            return out
        self.column = 0
        return out + "\n"

    def _part(self, part: str) -> Iterator[str]:
        """Yield what can be written after the next part: a word, a space, a line break; or a line without tabs."""
        # A lone return would let one line hide another; before a line feed, it is part of a line break.
        lone_return, self._after_return = self._after_return and part != "\n", part == "\r"
        if lone_return:
            yield from self._run("\ufffd")
        if part == "\n":
            yield self.flush() + "\n"
            self.column = 0
        elif part in " \t":
            yield self.flush() + self._space(1 if part == " " else TAB_COLUMNS)
        elif part != "\r":
            yield from self._run(printable(part))

    def _run(self, text: str) -> Iterator[str]:
        """Yield what can be written after adding to the word."""
        if self._right is None:
            self._add(text, len(text))
            return
        joined = self._last + text
        if joined.isascii() and self._word_width + len(joined) <= self._room:
            # Most words are like this one.
            self._add(joined[:-1], len(joined) - 1)
            self._last = joined[-1]
            return
        *whole, (self._last, _) = clusters(joined)
        for cluster, size in whole:
            yield self._keep(cluster, size)
        if len(self._last) > LONGEST_CLUSTER:
            last, self._last = self._last, ""
            yield self._keep(last, width(last))

    def _keep(self, cluster: str, size: int) -> str:
        """Add to the word; Chinese can be broken anywhere, and so can words longer than a line."""
        too_long = self._word_width + size > self._room
        out = self._written_word() if too_long or (size == 2 and self._word) else ""
        self._add(cluster, size)
        return out

    def _add(self, text: str, size: int) -> None:
        self._word.append(text)
        self._word_width += size

    def _written_word(self) -> str:
        word, self._word = "".join(self._word), []
        size, self._word_width = self._word_width, 0
        if not word:
            return ""
        if self._right is not None and self.column + size > self._right and self.column > len(self._indent):
            self.column = 0
            return "\n" + self._at_margin(word, size)
        return self._at_margin(word, size)

    def _space(self, size: int) -> str:
        if self._right is not None and self.column + size >= self._right:
            # The line break replaces it.
            self.column = self._right
            return ""
        return self._at_margin(" " * size, size)

    def _at_margin(self, text: str, size: int) -> str:
        indent = "" if self.column else self._indent
        self.column += len(indent) + size
        return indent + text


def wrapped(text: str, columns: int | None, indent: str = "  ") -> str:
    """Return a whole text, safe, indented and wrapped, with a line break at its end."""
    wrapper = Wrapper(columns, indent)
    return wrapper.feed(text) + wrapper.end_line()
