"""Wrapper: an agent's words as they come, made safe, indented and wrapped, so that no line of theirs looks like ours.

Safe character by character: no sequence for the terminal gets through, however it is split over pieces.
"""

from bullpen.terminal.columns import letter_width
from bullpen.text.safe import printable

TAB_COLUMNS = 4
NARROWEST = 20


class Wrapper:
    """Turns pieces of a text into what can be written now. Where lines are wrapped, half a word is held back."""

    def __init__(self, columns: int | None, indent: str = "  ") -> None:
        self.column = 0
        """Where the next character goes; 0 is the beginning of a line."""
        self._right = None if columns is None else max(columns, NARROWEST)
        self._indent = indent
        self._word = ""
        self._word_width = 0
        self._after_return = False

    def feed(self, piece: str) -> str:
        """Return what of the text so far can be written now."""
        out = "".join(map(self._letter, piece))
        return out if self._right is not None else out + self.flush()

    def flush(self) -> str:
        """Return what was held back."""
        word, self._word = self._word, ""
        size, self._word_width = self._word_width, 0
        if not word:
            return ""
        if self._right is not None and self.column + size > self._right and self.column > len(self._indent):
            self.column = 0
            return "\n" + self._at_margin(word, size)
        return self._at_margin(word, size)

    def end_line(self) -> str:
        """Return what ends the line, if one is begun."""
        out = self.flush()
        if not self.column:
            return out
        self.column = 0
        return out + "\n"

    def _letter(self, letter: str) -> str:
        # A lone return would let one line hide another; with a line feed behind it, it only ends a line.
        lone_return, self._after_return = self._after_return and letter != "\n", letter == "\r"
        out = self._keep("\ufffd", 1) if lone_return else ""
        if letter == "\r":
            return out
        if letter == "\n":
            return out + self._new_line()
        if letter in " \t":
            return out + self.flush() + self._space(1 if letter == " " else TAB_COLUMNS)
        shown = printable(letter)
        return out + self._keep(shown, letter_width(shown))

    def _keep(self, letter: str, size: int) -> str:
        """Add a letter to the word; Chinese can be broken anywhere, and so can what is longer than a line."""
        room = None if self._right is None else self._right - len(self._indent)
        too_long = room is not None and self._word_width + size > room
        out = self.flush() if too_long or (size == 2 and self._word) else ""
        self._word += letter
        self._word_width += size
        return out

    def _new_line(self) -> str:
        out = self.flush() + "\n"
        self.column = 0
        return out

    def _space(self, size: int) -> str:
        if self._right is not None and self.column + size >= self._right:
            # The end of the line takes its place.
            self.column = self._right
            return ""
        return self._at_margin(" " * size, size)

    def _at_margin(self, text: str, size: int) -> str:
        indent = "" if self.column else self._indent
        self.column += len(indent) + size
        return indent + text


def wrapped(text: str, columns: int | None, indent: str = "  ") -> str:
    """Return a whole text, safe, indented and wrapped, with an end of line."""
    wrapper = Wrapper(columns, indent)
    return wrapper.feed(text) + wrapper.end_line()
