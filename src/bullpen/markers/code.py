"""Where a text is code or a quote: there are no markers in it.

The rules are Markdown's: fenced blocks, code spans within a paragraph, and lines that begin with ">". Deliberate
differences are in docs/decisions.md, 3. Where parsers disagree, everything that one of them treats as code is hidden.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from bullpen.markers.blocks import BlockReader, normal_line_breaks
from bullpen.markers.runs import runs
from bullpen.markers.spans import code_spans


class Block(Struct, frozen=True):
    """Lines that belong together, from their first character to their last."""

    start: int
    end: int
    hidden: bool
    """Whether it is code or a quote."""
    follows_quote: bool = False
    """Whether it is the rest of a paragraph that begins in a quote."""
    is_whole: bool = False
    """Whether it is many paragraphs and quotes, in which every code span ends in its line."""


def blocks(text: str) -> Iterator[Block]:
    """Yield the hidden blocks and the paragraphs of a text, in order. The rest contains no code."""
    paragraph: int | None = None
    follows_quote = False
    for kind, start, end in runs(text, BlockReader()):
        if paragraph is not None and kind != "more":
            yield Block(paragraph, start, hidden=False, follows_quote=follows_quote)
            paragraph = None
        if kind in ("code", "quote"):
            # The last line break stays visible, so that the next line still begins after one.
            yield Block(start, end - 1, hidden=True)
        elif kind == "whole":
            yield Block(start, end, hidden=False, is_whole=True)
        elif kind in ("text", "more") and paragraph is None:
            paragraph, follows_quote = start, kind == "more"
    if paragraph is not None:
        yield Block(paragraph, len(text), hidden=False, follows_quote=follows_quote)


HIDDEN = "\0"

_INDENTED_LINE = re.compile(r"^(?: {4}| {0,3}\t)", re.MULTILINE)
_QUOTED_LINES = re.compile(r"^[ \t]*+(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t][ \t]*+)*+>.*+", re.MULTILINE)


def hide_code(text: str) -> str:
    """Return a text of the same length in which all code and quotes are replaced by HIDDEN."""
    return "".join(visible_pieces(text))


def visible_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of the text with its code and quotes hidden, each as soon as it is known."""
    if "`" not in text and "~~~" not in text and ">" not in text:
        yield text
        return
    text = normal_line_breaks(text)
    done = 0
    for block in blocks(text):
        said = text[block.start : block.end]
        if not block.hidden and "`" not in said and ">" not in said:
            continue
        yield text[done : block.start]
        if block.hidden:
            yield HIDDEN * len(said)
        elif block.is_whole:
            yield from _pieces_of_paragraph(_with_quoted_lines_hidden(said), follows_quote=False)
        elif ">" in said:
            seen = "".join(_pieces_of_paragraph(said, block.follows_quote))
            yield from _with_hidden(seen, (line.span() for line in _QUOTED_LINES.finditer(said)))
        else:
            yield from _pieces_of_paragraph(said, block.follows_quote)
        done = block.end
    yield text[done:]


def has_open_code_span(text: str) -> bool:
    """Return whether a backtick at the end of a text may open a code span that continues in the next line."""
    reader = BlockReader()
    paragraph: list[str] = []
    for line in normal_line_breaks(text).split("\n"):
        reader.read(line)
        if not reader.continues or reader.is_code:
            paragraph = []
        if not reader.is_code:
            paragraph.append(line)
    last = "\n".join(paragraph)
    return any("`" in piece for piece in _with_hidden(last, code_spans(last)))


def _pieces_of_paragraph(paragraph: str, follows_quote: bool) -> Iterator[str]:
    if paragraph.count("`") < 2:  # a lone backtick opens nothing
        yield paragraph
    elif follows_quote and _INDENTED_LINE.search(paragraph, 0, paragraph.rfind("`")):
        # Parsers disagree whether such a line belongs to the quote or is code, and so which spans there are.
        yield _all_between_backticks_hidden(paragraph)
    elif "``" in paragraph or "\\`" in paragraph:
        yield from _with_hidden(paragraph, _insides(paragraph))
    else:
        yield _every_second_piece_hidden(paragraph)


def _with_quoted_lines_hidden(text: str) -> str:
    return _QUOTED_LINES.sub(lambda line: HIDDEN * len(line[0]), text) if ">" in text else text


def _insides(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield the code spans without their backticks, which stay visible."""
    for start, end in code_spans(paragraph):
        span = paragraph[start:end]
        backticks = (len(span) - len(span.strip("`"))) // 2
        yield start + backticks, end - backticks


def _all_between_backticks_hidden(paragraph: str) -> str:
    """Hide everything that may be a code span."""
    first, end = paragraph.find("`"), paragraph.rfind("`") + 1
    return "".join(_with_hidden(paragraph, [(first, end)]))


def _every_second_piece_hidden(paragraph: str) -> str:
    """Hide the code spans of a paragraph with single backticks only, the usual case."""
    pieces = paragraph.split("`")
    closed = slice(1, len(pieces) - 1, 2)
    pieces[closed] = [HIDDEN * len(code) for code in pieces[closed]]
    return "`".join(pieces)


def _with_hidden(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    done = 0
    for start, end in spans:
        yield text[done:start]
        yield HIDDEN * (end - start)
        done = end
    yield text[done:]
