"""A text in Markdown as runs of lines of one kind: one pattern finds what a reader would need many steps for.

Every run is what a reader finds line by line, and leaves it in the same state. So the answer does not depend on how
long a text is, or where a run begins.
"""

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from bullpen.markers.blocks import BlockReader

Run = tuple[str, int, int]
"""What lines are, as BlockReader.read says it, where they begin, and where the line after them begins."""

_LINE_END = r"(?:\n|\Z)"
_BLANK_LINES = re.compile(r"(?:[ \t]*+\r?+\n)++")
# A line of a paragraph for certain: it begins with nothing that may be the sign of another block.
_TEXT_BEGINS = r" {0,3}(?:[^\s>#`~=\-*+_0-9]|`{1,2}[^`\n]|[*_]{1,2}[^\s*_]|[0-9]++(?![.)]))"
_TEXT_LINES = re.compile(rf"(?:{_TEXT_BEGINS}[^\n]*+{_LINE_END})++")
# A tab is as wide as its column demands, so a line with one is read by itself.
_QUOTED_LINES = re.compile(rf"(?: {{0,3}}>[^\n\t]*+{_LINE_END})++")
_QUOTE_MARK = re.compile("\n {0,3}> ?")
_EMPTY_QUOTED_LINE = re.compile(r" {0,3}> *+\r?+\n(?! {0,3}>)")
_SIGN = re.compile("[`>~]")
_NEW_BEGINNINGS = ("\n\n", "\n\r\n", "\n- ", "\n* ", "\n+ ", "\n# ")
_NEW_BEGINNING = re.compile(r"\n\r?\n(?=\S)|\n(?=[-*+#] \S)")


def _fenced_block(sign: str, information: str) -> str:
    """Return a pattern for a block whose first fence has three signs, with the blank lines after it."""
    closing = rf" {{0,3}}{sign}{{3,}}+[ \t]*+\r?+{_LINE_END}"
    opening = rf" {{0,3}}{sign}{{3}}(?!{sign}){information}*+\n"
    return rf"{opening}(?:(?!{closing})[^\n]*+\n)*+{closing}(?:[ \t]*+\r?+\n)*+"


_FENCED_WITH_BACKTICKS, _FENCED_WITH_TILDES = _fenced_block("`", r"[^`\n]"), _fenced_block("~", r"[^\n]")
_FENCED_BLOCKS = re.compile(rf"(?:{_FENCED_WITH_BACKTICKS}|{_FENCED_WITH_TILDES})++")


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
        if self._reader.fence:
            return None if self._reader.is_nested else self._rest_of_fenced_block(place)
        if place > self._sign and (run := self._lines_without_signs(place)):
            return run
        if self._reader.is_nested:
            return None
        return (
            self._text_lines(place)
            or self._run_of("blank", _BLANK_LINES, place)
            or self._quoted_lines(place)
            or self._run_of("code", _FENCED_BLOCKS, place)
        )

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

    def _text_lines(self, place: int) -> Run | None:
        kind = "more" if self._reader.in_paragraph else "text"
        return self._run_of(kind, _TEXT_LINES, place, in_paragraph=True)

    def _quoted_lines(self, place: int) -> Run | None:
        run = self._run_of("quote", _QUOTED_LINES, place) if self._reader.may_nest else None
        if run and not self._is_closed(*run):
            inside = self._reader.inside_quote()
            quoted = _QUOTE_MARK.sub("\n", f"\n{self._text[place : run[2]]}")[1:]
            deque(runs(quoted, inside), maxlen=0)
            self._reader.leave_quote_open(inside)
        return run

    def _is_closed(self, _: str, start: int, end: int) -> bool:
        """Tell whether no line after a quote can belong to it: it ends with an empty line, or one follows."""
        if end >= len(self._text):
            return not self._reader.is_inside_quote
        last_line = self._text.rfind("\n", start, end - 1) + 1 or start
        return bool(_BLANK_LINES.match(self._text, end) or _EMPTY_QUOTED_LINE.match(self._text, last_line))

    def _run_of(self, kind: str, lines: re.Pattern[str], place: int, *, in_paragraph: bool = False) -> Run | None:
        found = lines.match(self._text, place)
        if not found:
            return None
        self._reader.leave_all(in_paragraph=in_paragraph)
        end = found.end()
        return kind, place, end if self._text[end - 1] == "\n" else end + 1


@lru_cache(maxsize=32)
def _closing_fence(sign: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"\n {{0,3}}{sign}{{{length},}}[ \t]*+\r?+(?=\n|\Z)")
