"""Text from elsewhere, made safe and short for the screen; and times, tokens and money in few characters."""

import re
import time
from itertools import accumulate

from msgspec import Struct

from bullpen.text.safe import printable
from bullpen.turn_events import Usage

# More of one message is not laid out: a thousand list items are four thousand widgets.
MOST_CHARACTERS = 10_000
MOST_LINES = 150
# A line of a list or of a table takes as many widgets as three others.
_WEIGHTY = re.compile(r"\s*([-*+|>]|\d+[.)])")
TAB = "    "


def shown(text: str) -> str:
    """Return text that a terminal shows and never obeys, with one kind of line break and no tabs."""
    if not text.isascii():
        text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    return printable(text.replace("\r\n", "\n")).replace("\t", TAB)


def one_line(text: str, most: int = 80) -> str:
    """Return the beginning of a text on one line."""
    words = " ".join(shown(text[: 4 * most]).split())
    return words if len(words) <= most and len(text) <= 4 * most else f"{words[: most - 1]}…"


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


def clock(milliseconds: int) -> str:
    """Return the time of day."""
    try:
        return time.strftime("%H:%M", time.localtime(milliseconds / 1000))
    except (ValueError, OverflowError, OSError):
        return "--:--"


def duration(seconds: float) -> str:
    """Return how long something took: 0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def count(number: int) -> str:
    """Return a number in at most five characters: 950, 1.2k, 34k, 5.6M."""
    for unit, size in (("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            value = number / size
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    return str(number)


def money(dollars: float) -> str:
    """Return what something cost."""
    return f"${dollars:.2f}" if dollars >= 0.1 or not dollars else f"${dollars:.3f}"


def used(usage: Usage | None) -> str:
    """Return what a turn took: tokens and, where it is known, money."""
    if usage is None:
        return ""
    tokens = f"{count(usage.input_tokens + usage.output_tokens)} tokens"
    return tokens if usage.cost_usd is None else f"{tokens} · {money(usage.cost_usd)}"
