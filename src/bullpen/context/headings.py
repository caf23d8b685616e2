"""Lines in a message that would read as a heading of the prompt, or as another speaker's line: indented and reported.

Code in a message is not changed: in Markdown, it cannot be mistaken for a heading. For that, a message must not leave
its code open, or the lines of the next speaker would read as code, too.
"""

import re
import sys
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from bullpen.markers.blocks import BlockReader, normal_line_breaks
from bullpen.markers.code import has_open_code_span
from bullpen.markers.spans import code_spans
from bullpen.text.clean import INVISIBLE, LINE_BREAKS, WHITE_SPACE

INDENT = "  "
NO_SPAN = (sys.maxsize, sys.maxsize)
_BLANK = "".join(space for space in WHITE_SPACE + INVISIBLE if space not in LINE_BREAKS)
_LINE_BREAK = re.compile(f"\r\n|[{LINE_BREAKS}]")


class GuardedText(Struct, frozen=True):
    """A message as it goes into a prompt, and where it was changed."""

    text: str
    indented_lines: tuple[int, ...] = ()
    """Counted from 1, within the message."""


class LineGuard:
    """Protects the lines that only a prompt itself may contain: its headings, and the starts of its speakers' lines."""

    def __init__(
        self, headings: tuple[str, ...], speaker_starts: tuple[str, ...], other_starts: tuple[str, ...] = ()
    ) -> None:
        self._texts = (*headings, *speaker_starts, *other_starts)
        self._knows_speakers = bool(speaker_starts)
        self._speakers_begin_items = all(start.startswith("- ") for start in speaker_starts)
        self._headings = headings
        self._starts = (*speaker_starts, *other_starts)

    @cached_property
    def _protected(self) -> re.Pattern[str]:
        """Where protected lines begin; most prompts have no text that could be one."""
        heading = rf"(?:{_any_of(self._headings)})[{_BLANK}]*(?:[{LINE_BREAKS}]|\Z)"
        return re.compile(rf"(?<![^{LINE_BREAKS}])(?={heading}|{_any_of(self._starts)})")

    def guarded(self, text: str, *, has_own_start: bool) -> GuardedText:
        """Return the text with protected lines indented; its first line only if it has no start of its own."""
        if not any(protected in text for protected in self._texts):
            return GuardedText(text)
        places = [match.start() for match in self._protected.finditer(text)]
        if has_own_start and places and places[0] == 0:
            del places[0]
        places = _outside_code(text, places) if places and ("`" in text or "~~~" in text) else places
        if not places:
            return GuardedText(text)
        pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
        return GuardedText(INDENT.join(pieces), tuple(_line_numbers(text, places)))

    def closed(self, text: str) -> str:
        """Return the text with open code closed, so that the next line does not read as code."""
        if not self._knows_speakers:
            return text
        if ("```" in text or "~~~" in text) and (fence := _open_fence(text)):
            return f"{text}\n{fence}"
        # A list item ends the paragraph before it and its code span. Any other line may continue both.
        if not self._speakers_begin_items and "`" in text and has_open_code_span(text):
            return f"{text}\n"
        return text


class _Line(Struct, frozen=True):
    """One line of a text, and where protected lines begin in it: at its start, or after another line break."""

    text: str
    start: int
    places: tuple[int, ...]

    @property
    def indented(self) -> str:
        """The line as it will be in the prompt: indenting a list item moves its content, too."""
        return INDENT + self.text if self.places[:1] == (self.start,) else self.text


def _outside_code(text: str, places: list[int]) -> list[int]:
    """Return the places that are neither in a closed fenced block nor in a code span.

    Every line is read as it will be in the prompt. A block whose end is missing does not protect what is in it.
    """
    lines = list(_lines(normal_line_breaks(text), places))
    reader = BlockReader()
    found: list[int] = []
    paragraph: list[_Line] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        length = _fenced_lines(reader, lines, number)
        if length:
            found += _outside_spans(paragraph)
            paragraph = []
            for fenced in lines[number : number + length]:
                reader.read(fenced.text)
            number += length
            continue
        reader.read(line.indented if not reader.fence else line.text)
        if reader.is_code:
            found += [*_outside_spans(paragraph), *line.places]
            paragraph = []
        elif reader.continues:
            paragraph.append(line)
        else:
            found += _outside_spans(paragraph)
            paragraph = [line]
        number += 1
    return [*found, *_outside_spans(paragraph)]


def _fenced_lines(reader: BlockReader, lines: list[_Line], number: int) -> int:
    """Return how many lines from this one on are a closed fenced block; 0 if none opens here, or it is not closed."""
    line = lines[number]
    if "```" not in line.text and "~~~" not in line.text:
        return 0
    ahead = reader.copy()
    ahead.read(line.text)
    if not ahead.fence or ahead.continues:
        return 0
    for place in range(number + 1, len(lines)):
        ahead.read(lines[place].text)
        if not ahead.continues:
            return place - number
        if not ahead.fence:
            return place - number + 1
    return len(lines) - number if ahead.is_nested else 0


def _outside_spans(paragraph: list[_Line]) -> Iterator[int]:
    """Yield the places of a paragraph that are not in a code span."""
    places = [place for line in paragraph for place in line.places]
    if not places:
        return
    start = paragraph[0].start
    spans = code_spans("\n".join(line.text for line in paragraph))
    first, last = next(spans, NO_SPAN)
    for place in places:
        # Both are in order, so each span is looked at once.
        while last <= place - start:
            first, last = next(spans, NO_SPAN)
        if place - start < first:
            yield place


def _lines(text: str, places: list[int]) -> Iterator[_Line]:
    left = places[::-1]
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        inside: list[int] = []
        while left and left[-1] <= end:
            inside.append(left.pop())
        yield _Line(line, start, tuple(inside))
        start = end + 1


def _open_fence(text: str) -> str | None:
    """Return the fence that would close the block a text ends in; None if it ends outside of one.

    A block in a list or a quote ends with them, so nothing needs to close it.
    """
    reader = BlockReader()
    for line in normal_line_breaks(text).split("\n"):
        reader.read(line)
    return None if reader.is_nested else reader.fence or None


def _line_numbers(text: str, places: list[int]) -> Iterator[int]:
    number, done = 1, 0
    for place in places:
        number += len(_LINE_BREAK.findall(text, done, place))
        done = place
        yield number


def _any_of(texts: tuple[str, ...]) -> str:
    # An empty alternative would match everywhere.
    return "|".join(map(re.escape, texts)) or r"(?!)"
