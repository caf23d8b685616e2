"""Where a text is code or a quote: there nothing is a marker.

The rules are Markdown's: fenced blocks, code spans within a paragraph, and lines that begin with ">". Two differences
are meant: a quote ends with its line, so that a marker on the line below a quote counts, and what is only indented is
no code. Where parsers do not agree, what one of them may call code is hidden.

The patterns are possessive and the lists are walked once, so the time grows with the length of the text and no faster.
"""

import re
from collections.abc import Iterable, Iterator

from bullpen.markers.blocks import BlockReader, blocks, normal_line_breaks

HIDDEN = "\0"
LONGEST_EXACT = 32 * 1024
"""Characters of a text that is read line by line. Whatever is longer is read quickly, and nearly as well."""

_LIST_ITEM = r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]"
_LINE_START = rf"[ \t]*+(?:{_LIST_ITEM}[ \t]*+)*+"
_QUOTED_LINE = ">.*+"


def _fenced_block(tick: str, group: int, opening_line: str) -> str:
    """Return a pattern for a block from its opening fence to a closing one at least as long, or to the text's end."""
    closing_fence = rf"[ \t]*+\{group}{tick}*+[ \t\r]*+$"
    return rf"({tick}{{3,}}+){opening_line}(?:\n(?!{closing_fence}).*+)*+(?:\n.*+)?+"


_FENCED = "|".join([_fenced_block("`", 1, r"[^`\n]*+$"), _fenced_block("~", 2, r".*+")])
# Fenced blocks one at a time: CPython loses its way when groups repeat within a possessive repeat.
_BLOCKS = re.compile(
    rf"^(?:(?:{_LINE_START}{_QUOTED_LINE}(?:\n++|\Z))++|{_LINE_START}(?:{_FENCED})(?:\n++|\Z))", re.MULTILINE
)
_QUOTED_LINES = re.compile(rf"^{_LINE_START}{_QUOTED_LINE}", re.MULTILINE)
_NEW_PARAGRAPH = re.compile(rf"(\n[ \t\r]*+(?:\n|#|{HIDDEN}|{_LIST_ITEM}))")
_BACKTICKS = re.compile(r"(?<!\\)(\\*+)(`++)")


def hide_code(text: str) -> str:
    """Return a text of the same length in which everything that is code or quote is blotted out."""
    if "`" not in text and "~~~" not in text and ">" not in text:
        return text
    text = normal_line_breaks(text)
    return _hide_exactly(text) if len(text) <= LONGEST_EXACT else _hide_quickly(text)


def has_open_code_span(text: str) -> bool:
    """Tell whether a backtick at the end of a text may open a code span that goes on in the line after it."""
    reader = BlockReader()
    paragraph: list[str] = []
    for line in normal_line_breaks(text).split("\n"):
        reader.read(line)
        if not reader.continues or reader.is_code:
            paragraph = []
        if not reader.is_code:
            paragraph.append(line)
    last = "\n".join(paragraph)
    return "`" in _blot_out(last, code_spans(last))


def _hide_exactly(text: str) -> str:
    pieces = []
    done = 0
    for block in blocks(text):
        pieces.append(text[done : block.start])
        said = text[block.start : block.end]
        if block.hidden:
            pieces.append(HIDDEN * len(said))
        else:
            pieces.append(_hide_all_between_backticks(said) if block.doubtful else _hide_code_spans(said))
        done = block.end
    pieces.append(text[done:])
    return _blot_out("".join(pieces), (match.span() for match in _QUOTED_LINES.finditer(text)))


def _hide_quickly(text: str) -> str:
    if ">" in text or "```" in text or "~~~" in text:
        text = _blot_out(text, (match.span() for match in _BLOCKS.finditer(text)))
    if "`" in text:
        parts = _NEW_PARAGRAPH.split(text)
        text = "".join(map(_hide_code_spans, parts))
    return text


def _hide_all_between_backticks(paragraph: str) -> str:
    """Hide what may be a code span, wherever its paragraph begins."""
    first, last = paragraph.find("`"), paragraph.rfind("`")
    return paragraph[:first] + HIDDEN * (last + 1 - first) + paragraph[last + 1 :] if first >= 0 else paragraph


def _hide_code_spans(paragraph: str) -> str:
    if paragraph.count("`") < 2:  # a lone backtick opens nothing
        return paragraph
    if "``" in paragraph or "\\`" in paragraph:
        return _blot_out(paragraph, code_spans(paragraph))
    # Single backticks only, as nearly always: every second piece between them is code.
    pieces = paragraph.split("`")
    closed = slice(1, len(pieces) - 1, 2)
    pieces[closed] = [HIDDEN * len(code) for code in pieces[closed]]
    return "`".join(pieces)


def code_spans(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield the spans between runs of equally many backticks, each run taking the nearest of its like that follows."""
    runs = [(run.start(2), run.end(2), len(run[1]) % 2) for run in _BACKTICKS.finditer(paragraph)]
    partners: list[int | None] = []
    nearest: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        start, end, escaped = runs[number]
        partners.append(nearest.get(end - start - escaped))
        nearest[end - start] = number
    partners.reverse()
    number = 0
    while number < len(runs):
        partner = partners[number]
        if partner is not None:
            start, _, escaped = runs[number]
            yield start + escaped, runs[partner][1]
            number = partner
        number += 1


def _blot_out(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces = []
    done = 0
    for start, end in spans:
        pieces.append(text[done:start])
        pieces.append(HIDDEN * (end - start))
        done = end
    pieces.append(text[done:])
    return "".join(pieces)
