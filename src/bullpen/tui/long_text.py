"""A long text as a screen takes it: its beginning and its end. What is between them is folded, never the end."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, takewhile

from msgspec import Struct

from bullpen.tui.text import MOST_CHARACTERS, MOST_LINES, shown, weight_of

LONGEST_PIECE = 1_000
"""Characters of a line that are shown or folded together."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Piece(Struct, frozen=True, gc=False):
    """A line of a text, or a part of a very long one."""

    text: int
    """Which of the texts it is of."""
    start: int
    end: int
    weight: int
    """As many plain lines take as long to lay out; lines of code take next to nothing."""
    fence: str
    """The line that began the code that it is in; nothing outside of code."""


class Folded(Struct, frozen=True):
    """Texts without what is too much, which may begin in one of them and end in another."""

    before: tuple[tuple[int, str], ...]
    """What is shown of which text, safe to show."""
    middle: str = ""
    """What is folded, as it was written."""
    after: tuple[tuple[int, str], ...] = ()


def folded(texts: Sequence[str], most_characters: int = MOST_CHARACTERS, most_lines: int = MOST_LINES) -> Folded:
    """Return texts that are shown below each other, with their middle folded if they are too long together."""
    pieces = [piece for number, text in enumerate(texts) for piece in pieces_of(text, number=number)]
    if fits(pieces, most_characters, most_lines):
        return Folded(tuple((number, shown(text)) for number, text in enumerate(texts)))
    first = taken(pieces, most_characters // 2, most_lines // 2)
    last = len(pieces) - min(len(pieces) - first, taken(pieces[::-1], most_characters // 2, most_lines // 2))
    return Folded(
        tuple(_shown(texts, pieces[:first], following=pieces[first : first + 1])),
        "\n\n".join(text for _, text in _raw(texts, pieces[first:last])),
        tuple(_shown(texts, pieces[last:])),
    )


def pieces_of(text: str, *, number: int = 0, start: int = 0, fence: str = "") -> Iterator[Piece]:
    """Yield the lines of a text from a place on, which may be within code that a line before it has begun."""
    at = start
    for line in text[start:].split("\n"):
        found = _FENCE.match(line)
        for begin in range(0, len(line) or 1, LONGEST_PIECE):
            end = min(begin + LONGEST_PIECE, len(line))
            stop = at + end + (end == len(line))
            weight = 0 if fence else weight_of(line[begin:end])
            yield Piece(number, at + begin, min(stop, len(text)), weight, fence)
        at += len(line) + 1
        if found and fence:
            fence = "" if found[1].startswith(_marker(fence)) and not found[2].strip() else fence
        elif found:
            fence = line


def fits(pieces: Sequence[Piece], most_characters: int = MOST_CHARACTERS, most_lines: int = MOST_LINES) -> bool:
    """Return whether a screen takes all of them."""
    return taken(pieces, most_characters, most_lines) == len(pieces)


def taken(pieces: Sequence[Piece], most_characters: int, most_lines: int) -> int:
    """Return how many of the first of them a screen takes; at least one."""
    sizes = accumulate(piece.end - piece.start for piece in pieces)
    weights = accumulate(piece.weight for piece in pieces)
    both = zip(sizes, weights, strict=True)
    fitting = takewhile(lambda both: both[0] <= most_characters and both[1] <= most_lines, both)
    return max(1, sum(1 for _ in fitting)) if pieces else 0


def effort(text: str) -> int:
    """Return as how many plain lines a message takes to lay out."""
    total = 0
    for piece in pieces_of(text):
        total += piece.weight
        if total >= MOST_LINES:
            return MOST_LINES
    return total


def within(fence: str, text: str) -> str:
    """Return a text that is shown by itself, although it begins within code."""
    return f"{fence[:LONGEST_PIECE]}\n{text}" if fence else text


def _marker(fence: str) -> str:
    """Return what begins and ends a block of code."""
    found = _FENCE.match(fence)
    return found[1] if found else ""


def _shown(texts: Sequence[str], pieces: Sequence[Piece], following: Sequence[Piece] = ()) -> Iterator[tuple[int, str]]:
    first = {number: next(group).fence for number, group in groupby(pieces, key=lambda piece: piece.text)}
    for number, text in _raw(texts, pieces):
        cut = [piece.fence for piece in following if piece.text == number and piece.fence]
        closed = f"{text.rstrip()}\n{_marker(cut[0])}" if cut else text
        yield number, shown(within(first[number], closed))


def _raw(texts: Sequence[str], pieces: Iterable[Piece]) -> Iterator[tuple[int, str]]:
    for number, group in groupby(pieces, key=lambda piece: piece.text):
        places = list(group)
        yield number, texts[number][places[0].start : places[-1].end]
