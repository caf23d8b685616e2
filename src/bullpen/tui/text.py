"""Text from elsewhere, made safe and short for the screen."""

import re
from itertools import accumulate

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content

from bullpen.text.safe import printable

# More of one message is not laid out: a thousand list items are four thousand widgets.
MOST_CHARACTERS = 10_000
MOST_LINES = 150
# A line of a list or of a table takes as many widgets as three others.
_WEIGHTY = re.compile(r"\s*([-*+|>]|\d+[.)])")
TAB = "    "
LEAST_SECONDS, NOTICING_SECONDS = 5.0, 3.0
CELLS_A_SECOND = 10.0
"""Columns of the screen that are read in a second; a Chinese character takes two of them."""


def shown(text: str) -> str:
    """Return text that a terminal shows and never obeys, with one kind of line break and no tabs."""
    if not text.isascii():
        text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    return printable(text.replace("\r\n", "\n")).replace("\t", TAB)


def code_line(text: str) -> str:
    """Return one line of a file that a terminal shows and never obeys, with no tabs; a line break in it can be seen."""
    text = text.replace("\t", TAB).replace("\r", "␍").replace("\n", "␊")
    if not text.isascii():
        text = text.replace("\u2028", "␤").replace("\u2029", "␤")
    return printable(text)


def one_line(text: str, most: int = 80) -> str:
    """Return the beginning of a text on one line."""
    words = " ".join(shown(text[: 4 * most]).split())
    return words if len(words) <= most and len(text) <= 4 * most else f"{words[: most - 1]}…"


def lines_of(text: str, width: int) -> int:
    """Return how many lines a text takes where they are this wide."""
    return len(Content(text).wrap(width))


def cut_to_lines(text: str, width: int, most: int) -> str:
    """Return the beginning of a text, in that many lines at most; what is cut ends in "…"."""
    said, room = shown(text), most * width
    while lines_of(said, width) > most and room > 1:
        said, room = one_line(text, room), room - 1
    return said


def reading_seconds(text: str) -> float:
    """Return how long a person needs to notice a text and to read it: half the speed at which people read books."""
    return max(LEAST_SECONDS, NOTICING_SECONDS + cell_len(text) / CELLS_A_SECOND)


class Part(Struct, frozen=True):
    """As much of a text as is laid out, and how many characters are not."""

    text: str
    left_out: int = 0


def beginning(text: str, most_characters: int = MOST_CHARACTERS, most_lines: int = MOST_LINES) -> Part:
    """Return the beginning of a text, safe to show: as many characters and lines as a screen takes without effort."""
    lines = text[:most_characters].split("\n", most_lines)[:most_lines]
    weights = accumulate(map(weight_of, lines))
    # The first line is always there: what it has too much is cut by characters.
    kept = [
        line
        for place, (line, weight) in enumerate(zip(lines, weights, strict=True))
        if not place or weight <= most_lines
    ]
    joined = "\n".join(kept)
    return Part(shown(joined), len(text) - len(joined))


def weight_of(line: str) -> int:
    """Return how many plain lines it takes as much effort as."""
    return 3 if _WEIGHTY.match(line) else 1 + len(line) // 300
