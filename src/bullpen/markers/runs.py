"""A Markdown text as runs of lines of one kind: one pattern finds what a reader would need many steps for.

Every run hides the same text as reading line by line, and leaves the reader in the same state. Where no pattern
matches, above all in fenced blocks within lists, lines are read one by one.
"""

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from bullpen.markers.blocks import BlockReader
from bullpen.text.patterns import pattern

Run = tuple[str, int, int]
"""The kind of some lines, where they begin, and where the line after them begins.

The kind is that of BlockReader.read, or "whole": lines of any kind, except those of fenced blocks, in which every code
span ends in its line.
"""

SHORT_QUOTE = 512
"""Characters. For a shorter quote, it is worth checking whether it can be part of a longer run."""

_LINE_END = r"(?:\n|\Z)"
_BLANK_LINE = r"(?:[ \t]*+\r?+\n)"
# The start of a line that is certainly in a paragraph: not a character that may begin another block.
_LETTER_BEGINS = r"(?:[^\s>#`~=\-*+_0-9]|[*_]{1,2}[^\s*_`]|[0-9]++(?![.)]))"
_CODE_SPAN_BEGINS = r"[*_]{0,2}`{1,2}+(?!`)"
_TEXT_LINES = rf"(?: {{0,3}}(?:{_LETTER_BEGINS}|{_CODE_SPAN_BEGINS})[^\n]*+{_LINE_END})++{_BLANK_LINE}*+"
# A code span that ends in the line in which it begins, and what may be between such spans.
_SPAN_IN_LINE = r"(?:`(?!`)[^`\n]++`(?!`)|``(?!`)(?:[^`\n]++|`(?!`))++``(?!`))"
_BETWEEN_SPANS = r"(?:\\[\\`]?+|~{1,2}+(?!~))"
# Few spans, since a line of nothing else is a run of its own, and need not be looked at twice.
_PLAIN_LINE = rf"[^\\`~\n]*+(?:(?:{_BETWEEN_SPANS}|{_SPAN_IN_LINE})[^\\`~\n]*+){{0,32}}+{_LINE_END}"
_TEXT_BEGINS = rf"(?= {{0,3}}(?:{_LETTER_BEGINS}|{_CODE_SPAN_BEGINS}))"
_PLAIN_LINES = rf"(?:{_TEXT_BEGINS}{_PLAIN_LINE}|{_BLANK_LINE})++"
# A tab is as wide as its column demands, so a line with one is read by itself.
_QUOTED_LINES = rf"(?: {{0,3}}>[^\n\t]*+{_LINE_END})++"
_QUOTE_MARK = pattern("\n {0,3}> ?")
_EMPTY_QUOTED_LINE = pattern(r" {0,3}> *+\r?+\n(?! {0,3}>)")
_FOLLOWING_BLANK_LINE = pattern(_BLANK_LINE)
_QUOTE_BEGINS = r"[ \t]*+(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)*+>"
_INDENTED = r"(?: {4}| {0,3}\t)"
# Many quoted lines are a run of their own.
_LONG_QUOTE = r"(?: {0,3}>[^\n]*+\n){8}"
# Where a paragraph that begins in a quote continues with such a line, spans are hidden in another way.
_QUOTE_BEFORE_INDENTED = (
    rf"{_QUOTE_BEGINS}[^\n]*+\n(?:(?!{_BLANK_LINE}|{_QUOTE_BEGINS}|{_INDENTED})[^\n]*+\n)*+(?!{_BLANK_LINE}){_INDENTED}"
)
_HARD_QUOTE = rf"(?:{_LONG_QUOTE}|{_QUOTE_BEFORE_INDENTED})"
_WHOLE_SPANS = pattern(rf"(?!{_HARD_QUOTE})(?:[^\\`~\n]++|\n(?!{_HARD_QUOTE})|{_SPAN_IN_LINE}|{_BETWEEN_SPANS})*+")
_NO_SPANS = pattern(rf"(?!{_LONG_QUOTE})(?:[^`~\n]++|\n(?!{_LONG_QUOTE})|~{{1,2}}+(?!~))*+")
_BEGINS = r"(?:[-*+]|1[.)]|#{1,6}) \S"
_BEGINS_OR_BLANK = pattern(rf"{_BEGINS}|{_BLANK_LINE}")
_LAST_BEGINNING = pattern(rf"(?s:.*)\n(?:[ \t]*+\r?+\n(?=\S)|(?={_BEGINS}))")
_FENCE_BEGINS = pattern(rf"`{{3,}}+[^`\n]*+{_LINE_END}|~{{3}}")


def _fenced_block(sign: str, information: str) -> str:
    """Return a pattern for a block whose opening fence has three characters, with the blank lines after it."""
    closing = rf" {{0,3}}{sign}{{3,}}+[ \t]*+\r?+{_LINE_END}"
    opening = rf" {{0,3}}{sign}{{3}}(?!{sign}){information}*+\n"
    return rf"{opening}(?:(?!{closing})[^\n]*+\n)*+{closing}{_BLANK_LINE}*+"


_FENCED_WITH_BACKTICKS, _FENCED_WITH_TILDES = _fenced_block("`", r"[^`\n]"), _fenced_block("~", r"[^\n]")
_FENCED_BLOCKS = rf"(?:{_FENCED_WITH_BACKTICKS}|{_FENCED_WITH_TILDES})++"
_HIDDEN_LINES = rf"(?P<quote>{_QUOTED_LINES})|(?P<code>{_FENCED_BLOCKS})"
_IN_PARAGRAPH = pattern(rf"(?P<more>{_TEXT_LINES})|(?P<blank>{_BLANK_LINE}++)|{_HIDDEN_LINES}")
# Several paragraphs in which every span ends in its line are as good as one.
_OUTSIDE_PARAGRAPH = pattern(rf"(?P<text>{_PLAIN_LINES}|{_TEXT_LINES})|{_HIDDEN_LINES}")


def runs(text: str, reader: BlockReader) -> Iterator[Run]:
    """Yield a text in runs, of one line where no pattern matches, and advance the reader."""
    patterns = _Patterns(text, reader)
    place = 0
    while place < len(text):
        run = patterns.run(place) or _line(text, place, reader)
        yield run
        place = run[2]


def _line(text: str, place: int, reader: BlockReader) -> Run:
    end = text.find("\n", place)
    if end < 0:
        end = len(text)
    return reader.read(text[place:end]), place, end + 1


class _Patterns:
    """Finds runs in one text, from its beginning to its end."""

    def __init__(self, text: str, reader: BlockReader) -> None:
        self._text = text
        self._reader = reader
        self._has_backticks = "`" in text
        self._sign = -1
        """Where the next character is that cannot be in a run of whole spans."""

    def run(self, place: int) -> Run | None:
        """Return the run that begins here, if one does, and move the reader to its end."""
        reader = self._reader
        if reader.is_nested or not reader.may_nest:
            return None if reader.fence else self._lines_of_whole_spans(place)
        if reader.fence:
            return self._rest_of_fenced_block(place)
        text = self._text
        lines = _IN_PARAGRAPH.match(text, place) if reader.in_paragraph else _OUTSIDE_PARAGRAPH.match(text, place)
        if not lines or not lines.lastgroup:
            return self._lines_of_whole_spans(place)
        end = lines.end()
        if text[end - 1] != "\n":
            end += 1
        if lines.lastgroup == "quote":
            is_short = end - place < SHORT_QUOTE
            return (self._lines_of_whole_spans(place) if is_short else None) or self._quoted_lines(place, end)
        is_text = lines.lastgroup in ("text", "more")
        reader.leave_all(in_paragraph=is_text and not self._ends_with_blank_line(place, end))
        return lines.lastgroup, place, end

    def _ends_with_blank_line(self, start: int, end: int) -> bool:
        last_line = self._text.rfind("\n", start, end - 1) + 1 or start
        return not self._text[last_line:end].strip(" \t\r\n")

    def _rest_of_fenced_block(self, place: int) -> Run:
        fence = self._reader.fence
        closing = _closing_fence(fence[0], len(fence)).search(self._text, place - 1)
        if not closing:
            return "code", place, len(self._text) + 1
        self._reader.leave_all()
        return "code", place, closing.end() + 1

    def _lines_of_whole_spans(self, place: int) -> Run | None:
        """Return the lines up to the last one that nothing above it changes, if they contain no code but spans.

        Their kind does not matter, since every span ends in its line. Where a paragraph continues in which a span may
        be open, there must be no backticks.
        """
        if place <= self._sign:
            return None
        text = self._text
        is_beginning = not self._reader.in_paragraph or _BEGINS_OR_BLANK.match(text, place)
        lines = (_WHOLE_SPANS if is_beginning and self._has_backticks else _NO_SPANS).match(text, place)
        self._sign = lines.end() if lines else place
        if self._sign == len(text) and not self._reader.is_inside_quote:
            return "whole", place, len(text)
        end = self._last_beginning(place)
        if end == place:
            return None
        self._reader.leave_all()
        return "whole", place, end

    def _last_beginning(self, place: int) -> int:
        """Return where the last line before the next sign begins that ends all open blocks.

        Such a line follows a blank one or begins a list, a heading or a fenced block, and is not indented.
        """
        last_line = self._text.rfind("\n", place, self._sign) + 1
        if not last_line:
            return place
        if _FENCE_BEGINS.match(self._text, last_line):
            return last_line
        beginning = _LAST_BEGINNING.match(self._text, place, self._sign + 1)
        return beginning.end() if beginning else place

    def _quoted_lines(self, place: int, end: int) -> Run:
        if self._is_closed(place, end):
            self._reader.leave_all()
        else:
            inside = self._reader.inside_quote()
            quoted = _QUOTE_MARK.sub("\n", f"\n{self._text[place:end]}")[1:]
            deque(runs(quoted, inside), maxlen=0)
            self._reader.leave_quote_open(inside)
        return "quote", place, end

    def _is_closed(self, start: int, end: int) -> bool:
        """Return whether no line after a quote can belong to it: it ends with an empty line, or one follows."""
        if end >= len(self._text):
            return not self._reader.is_inside_quote
        last_line = self._text.rfind("\n", start, end - 1) + 1 or start
        return bool(_FOLLOWING_BLANK_LINE.match(self._text, end) or _EMPTY_QUOTED_LINE.match(self._text, last_line))


@lru_cache(maxsize=32)
def _closing_fence(sign: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"\n {{0,3}}{sign}{{{length},}}+[ \t]*+\r?+(?=\n|\Z)")
