"""Excerpts of long texts such as logs: the beginning, the end, and what is around the errors between them."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from bullpen.text.numbers import counted

LONGEST_LINE = 2_000
"""Characters. The rest of a longer line is left out of an excerpt."""
LINES_BEFORE, LINES_AFTER = 4, 12
"""How much is kept around a line that looks like an error."""
MARK_BYTES = 50
"""Room for the mark before such lines."""
_ERROR = re.compile(
    r"\b(?:error|exception|traceback|fatal|panic|fail(?:ed|ure|ures)?|assert(?:ion)?(?:error)?|abort(?:ed)?)\b|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
_NONE_OF_IT = re.compile(r"\b(?:0|no) (?:errors?|failed|failures?|exceptions?)\b", re.IGNORECASE)


class Excerpt(Struct, frozen=True, kw_only=True):
    """What is kept of a text."""

    text: str
    lines: int
    """How many lines the whole text has."""
    left_out: int = 0
    """How many of them are not in it."""
    is_whole: bool = True


def excerpt(text: str, most_bytes: int) -> Excerpt:
    """Return the text if it has at most this many bytes, else some of its lines, with a mark where others are missing.

    An eighth is for the beginning, half for the end, and the rest for what is around the first errors between them.
    """
    lines = text.split("\n")
    if len(text) <= most_bytes and len(text.encode()) <= most_bytes:
        return Excerpt(text=text, lines=len(lines))
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} […]" for line in lines]
    sizes = [len(line.encode()) + 1 for line in lines]
    head = _how_many(sizes, most_bytes // 8)
    tail = len(lines) - _how_many(sizes[head:][::-1], most_bytes // 2)
    middle = _around_errors(lines, sizes, head, tail, most_bytes * 3 // 8)
    kept = [*range(head), *middle, *range(tail, len(lines))]
    shown = "\n".join(_with_marks(lines, kept))
    return Excerpt(text=shown, lines=len(lines), left_out=len(lines) - len(kept), is_whole=False)


def _how_many(sizes: Sequence[int], room: int) -> int:
    """Return how many of the first lines fit."""
    for number, size in enumerate(sizes):
        room -= size
        if room < 0:
            return number
    return len(sizes)


def _around_errors(lines: Sequence[str], sizes: Sequence[int], first: int, end: int, room: int) -> list[int]:
    kept: list[int] = []
    following = first
    for index in range(first, end):
        if not _ERROR.search(lines[index]) or _NONE_OF_IT.search(lines[index]):
            continue
        room -= MARK_BYTES
        for near in range(max(following, index - LINES_BEFORE), min(end, index + LINES_AFTER + 1)):
            room -= sizes[near]
            if room < 0:
                return kept
            kept.append(near)
            following = near + 1
    return kept


def _with_marks(lines: Sequence[str], kept: Sequence[int]) -> Iterator[str]:
    following = 0
    for index in [*kept, len(lines)]:
        if index > following:
            yield f"[… {counted(index - following, 'line')} left out …]"
        if index < len(lines):
            yield lines[index]
        following = index + 1
