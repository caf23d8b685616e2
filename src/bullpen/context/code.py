"""Where a text is code or a quote: there nothing is a marker.

The rules are Markdown's: fenced blocks, code spans within a paragraph, and lines that begin with ">". One difference is
meant: a quote ends with its line, so that a marker on the line below a quote counts.

The patterns are possessive and the lists are walked once, so the time grows with the length of the text and no faster.
"""

import re
from collections.abc import Iterable, Iterator

HIDDEN = "\0"

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
_NEW_PARAGRAPH = re.compile(rf"(\n[ \t\r]*+(?:\n|#|{HIDDEN}|{_LIST_ITEM}))")
_BACKTICKS = re.compile(r"(?<!\\)(\\*+)(`++)")


def hide_code(text: str) -> str:
    """Return a text of the same length in which everything that is code or quote is blotted out."""
    if ">" in text or "```" in text or "~~~" in text:
        text = _blot_out(text, (match.span() for match in _BLOCKS.finditer(text)))
    if "`" in text:
        parts = _NEW_PARAGRAPH.split(text)
        # A lone backtick opens nothing.
        text = "".join([_hide_code_spans(part) if part.count("`") > 1 else part for part in parts])
    return text


def _hide_code_spans(paragraph: str) -> str:
    if "``" in paragraph or "\\`" in paragraph:
        return _blot_out(paragraph, _code_spans(paragraph))
    # Single backticks only, as nearly always: every second piece between them is code.
    pieces = paragraph.split("`")
    closed = slice(1, len(pieces) - 1, 2)
    pieces[closed] = [HIDDEN * len(code) for code in pieces[closed]]
    return "`".join(pieces)


def _code_spans(paragraph: str) -> Iterator[tuple[int, int]]:
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
