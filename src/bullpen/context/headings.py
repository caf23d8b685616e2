"""Lines in a message that would read as a heading of the prompt, or as another speaker's line: indented and reported.

What a message shows as code stays as it is: a reader of Markdown does not take it for anything else. For that to be
true, a message must not leave its code open, or the lines of the next speaker would read as code, too.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from bullpen.markers.blocks import open_fence
from bullpen.markers.code import closed_code, has_open_code_span
from bullpen.text.clean import LINE_BREAKS

INDENT = "  "
_LINE_BREAK = re.compile(f"\r\n|[{LINE_BREAKS}]")


class GuardedText(Struct, frozen=True):
    """A message as it goes into a prompt, and where it was changed."""

    text: str
    indented_lines: tuple[int, ...] = ()
    """Counted from 1, within the message."""


class LineGuard:
    """Protects the lines that only a prompt itself may write: its headings, and how its speakers' lines begin."""

    def __init__(self, headings: tuple[str, ...], speaker_starts: tuple[str, ...]) -> None:
        self._texts = (*headings, *speaker_starts)
        self._knows_speakers = bool(speaker_starts)
        self._speakers_begin_items = all(start.startswith("- ") for start in speaker_starts)
        heading = rf"(?:{_any_of(headings)})[ \t]*(?:[{LINE_BREAKS}]|\Z)"
        self._protected = re.compile(rf"(?<![^{LINE_BREAKS}])(?={heading}|{_any_of(speaker_starts)})")

    def guarded(self, text: str, *, has_own_start: bool) -> GuardedText:
        """Return the text with protected lines indented. Its first line is not one if our own start comes before it."""
        lines: set[int] = set()
        # What is indented may have been a list item, with code in it that is none any more; so it is looked at again.
        for ignores_code in (False, False, False, True):
            places = self._places(text, has_own_start=has_own_start, ignores_code=ignores_code)
            if not places:
                break
            lines.update(_line_numbers(text, places))
            pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
            text = INDENT.join(pieces)
        return GuardedText(text, tuple(sorted(lines)))

    def closed(self, text: str) -> str:
        """Return a text after which another line can follow without reading as its code."""
        if not self._knows_speakers:
            return text
        if ("```" in text or "~~~" in text) and (fence := open_fence(text)):
            return f"{text}\n{fence}"
        # A list item ends the paragraph before it, and a code span with it. Any other line may go on with both.
        if not self._speakers_begin_items and "`" in text and has_open_code_span(text):
            return f"{text}\n"
        return text

    def _places(self, text: str, *, has_own_start: bool, ignores_code: bool) -> list[int]:
        """Return where protected lines begin that are not code."""
        if not any(protected in text for protected in self._texts):
            return []
        places = [match.start() for match in self._protected.finditer(text)]
        if has_own_start and places and places[0] == 0:
            del places[0]
        return list(_outside(places, closed_code(text))) if places and not ignores_code else places


def _outside(places: list[int], ranges: list[tuple[int, int]]) -> Iterator[int]:
    """Yield the places that are in none of the ranges; both are in order."""
    left = ranges[::-1]
    for place in places:
        while left and left[-1][1] <= place:
            left.pop()
        if not left or place < left[-1][0]:
            yield place


def _line_numbers(text: str, places: list[int]) -> Iterator[int]:
    number, done = 1, 0
    for place in places:
        number += len(_LINE_BREAK.findall(text, done, place))
        done = place
        yield number


def _any_of(texts: tuple[str, ...]) -> str:
    # An alternative of nothing would be found everywhere.
    return "|".join(map(re.escape, texts)) or r"(?!)"
