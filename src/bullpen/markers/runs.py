"""A text in Markdown as runs of lines of one kind: one pattern finds what a reader would need many steps for.

Every run is what a reader finds line by line, and leaves the reader in the same state as that would. Where no pattern
fits, above all within lists, lines are read one by one.
"""

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from bullpen.markers.blocks import BlockReader

Run = tuple[str, int, int]
"""What lines are, as BlockReader.read says it, where they begin, and where the line after them begins."""

_LINE_END = r"(?:\n|\Z)"
_BLANK_LINE = r"(?:[ \t]*+\r?+\n)"
# What a line of a paragraph begins with for certain: nothing that may be the sign of another block.
_LETTER_BEGINS = r"(?:[^\s>#`~=\-*+_0-9]|[*_]{1,2}[^\s*_`]|[0-9]++(?![.)]))"
_CODE_SPAN_BEGINS = r"[*_]{0,2}`{1,2}+(?!`)"
_TEXT_LINES = rf"(?: {{0,3}}(?:{_LETTER_BEGINS}|{_CODE_SPAN_BEGINS})[^\n]*+{_LINE_END})++{_BLANK_LINE}*+"
_LINES_WITHOUT_BACKTICKS = rf"(?: {{0,3}}{_LETTER_BEGINS}[^\n`]*+{_LINE_END}|{_BLANK_LINE})++"
# A tab is as wide as its column demands, so a line with one is read by itself.
_QUOTED_LINES = rf"(?: {{0,3}}>[^\n\t]*+{_LINE_END})++"
_QUOTE_MARK = re.compile("\n {0,3}> ?")
_EMPTY_QUOTED_LINE = re.compile(r" {0,3}> *+\r?+\n(?! {0,3}>)")
_FOLLOWING_BLANK_LINE = re.compile(_BLANK_LINE)
_SIGN = re.compile("[`>~]")
_NEW_BEGINNINGS = ("\n\n", "\n\r\n", "\n- ", "\n* ", "\n+ ", "\n# ")
_NEW_BEGINNING = re.compile(r"\n\r?\n(?=\S)|\n(?=[-*+#] \S)")


def _fenced_block(sign: str, information: str) -> str:
    """Return a pattern for a block whose first fence has three signs, with the blank lines after it."""
    closing = rf" {{0,3}}{sign}{{3,}}+[ \t]*+\r?+{_LINE_END}"
    opening = rf" {{0,3}}{sign}{{3}}(?!{sign}){information}*+\n"
    return rf"{opening}(?:(?!{closing})[^\n]*+\n)*+{closing}{_BLANK_LINE}*+"


_FENCED_WITH_BACKTICKS, _FENCED_WITH_TILDES = _fenced_block("`", r"[^`\n]"), _fenced_block("~", r"[^\n]")
_FENCED_BLOCKS = rf"(?:{_FENCED_WITH_BACKTICKS}|{_FENCED_WITH_TILDES})++"
_HIDDEN_LINES = rf"(?P<quote>{_QUOTED_LINES})|(?P<code>{_FENCED_BLOCKS})"
_IN_PARAGRAPH = re.compile(rf"(?P<more>{_TEXT_LINES})|(?P<blank>{_BLANK_LINE}++)|{_HIDDEN_LINES}")
# Several paragraphs without backticks are as good as one.
_OUTSIDE_PARAGRAPH = re.compile(rf"(?P<text>{_LINES_WITHOUT_BACKTICKS}|{_TEXT_LINES})|{_HIDDEN_LINES}")


def runs(text: str, reader: BlockReader) -> Iterator[Run]:
    """Yield a text in runs, of one line where no pattern fits, and move the reader along."""
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
        self._sign = -1
        """Where the next sign of code or of a quote is."""

    def run(self, place: int) -> Run | None:
        """Return the run that begins here, if one does, and move the reader to its end."""
        reader = self._reader
        if reader.is_nested or not reader.may_nest:
            return None if reader.fence else self._lines_without_signs(place)
        if reader.fence:
            return self._rest_of_fenced_block(place)
        text = self._text
        lines = _IN_PARAGRAPH.match(text, place) if reader.in_paragraph else _OUTSIDE_PARAGRAPH.match(text, place)
        if not lines or not lines.lastgroup:
            return self._lines_without_signs(place)
        end = lines.end()
        if text[end - 1] != "\n":
            end += 1
        if lines.lastgroup == "quote":
            return self._quoted_lines(place, end)
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

    def _lines_without_signs(self, place: int) -> Run | None:
        """Return the lines before the last one that nothing above it changes, up to the next sign.

        Such a line follows a blank one or begins a list or a heading, and is not indented: all that was open ends.
        """
        if place <= self._sign:
            return None
        sign = _SIGN.search(self._text, place)
        self._sign = sign.start() if sign else len(self._text)
        last_line = self._text.rfind("\n", place, self._sign) + 1
        if not last_line:
            return None
        found = [self._text.rfind(beginning, place, last_line + 2) for beginning in _NEW_BEGINNINGS]
        beginnings = [_NEW_BEGINNING.match(self._text, begins) for begins in found if begins >= 0]
        end = max((match.end() for match in beginnings if match and match.end() <= last_line), default=place)
        if end == place:
            return None
        self._reader.leave_all()
        return "blank", place, end

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
        """Tell whether no line after a quote can belong to it: it ends with an empty line, or one follows."""
        if end >= len(self._text):
            return not self._reader.is_inside_quote
        last_line = self._text.rfind("\n", start, end - 1) + 1 or start
        return bool(_FOLLOWING_BLANK_LINE.match(self._text, end) or _EMPTY_QUOTED_LINE.match(self._text, last_line))


@lru_cache(maxsize=32)
def _closing_fence(sign: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"\n {{0,3}}{sign}{{{length},}}+[ \t]*+\r?+(?=\n|\Z)")
