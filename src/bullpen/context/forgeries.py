"""Lines in what was said that a reader could take for ours: a heading, or the beginning of somebody's message."""

import re

from bullpen.context.text import LINE_BREAKS

INDENT = "  "


class Forgeries:
    """Finds such lines in texts for one layout, and indents them, so that only our own stand at the margin."""

    def __init__(self, headings: tuple[str, ...], line_starts: tuple[str, ...]) -> None:
        self._headings = headings
        self._line_starts = line_starts
        heading = rf"(?:{_any_of(headings)})[ \t]*(?:[{LINE_BREAKS}]|\Z)"
        somebody = rf"(?:- )?(?:{_any_of(line_starts)})"
        self._at_line_starts = re.compile(rf"(?<![^{LINE_BREAKS}])(?={heading}|{somebody})")
        self._behind_line_breaks = re.compile(rf"(?<![^{LINE_BREAKS}])(?={heading}|(?<=[{LINE_BREAKS}]){somebody})")

    def indented(self, text: str) -> str:
        """Return a text that will stand at the margin."""
        return self._at_line_starts.sub(INDENT, text) if self._may_be_in(text) else text

    def indented_after_first_line(self, text: str) -> str:
        """Return a text whose first line says, in our words, who speaks."""
        return self._behind_line_breaks.sub(INDENT, text) if self._may_be_in(text) else text

    def _may_be_in(self, text: str) -> bool:
        return any(heading in text for heading in self._headings) or any(start in text for start in self._line_starts)


def _any_of(texts: tuple[str, ...]) -> str:
    # An alternative of nothing would be found everywhere.
    return "|".join(map(re.escape, texts)) or r"(?!)"
