"""What is code or a quote according to markdown-it, a CommonMark parser that is not ours.

As in the browser, HTML is off: a tag is text. Two differences of ours are meant, and not counted as code here: a quote
ends with its line (docs/decisions.md, 3), and what is merely indented by four spaces is no code. Definitions of links
([a]: b) are text to us: a backtick in one counts.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bullpen.markers.grammar import Markers

_NAME = re.compile("w[0-9]+w")
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).disable("reference")


def names_in_blocks_and_spans(text: str) -> tuple[set[str], set[str]]:
    """Return the numbered names that stand in fenced blocks or quotes, and those that stand in code spans."""
    lines = re.split("\r\n|\n|\r", text)
    depth, in_blocks, in_spans = 0, set[str](), set[str]()
    for token in _MARKDOWN.parse(text):
        if token.type == "blockquote_open":
            depth += 1
        elif token.type == "blockquote_close":
            depth -= 1
        elif token.type == "fence":
            in_blocks.update(_NAME.findall(f"{token.info} {token.content}"))
        elif token.type == "inline":
            if depth:
                in_blocks.update(name for name in _NAME.findall(token.content) if _on_a_quoted_line(name, lines))
            else:
                in_spans.update(name for span in _code_spans(token) for name in _NAME.findall(span.content))
    return in_blocks, in_spans


_LABEL = re.compile("zz[0-9]+zz")
_END = "zzENDzz"


def labels_in_code(text: str, *, open_code_counts: bool) -> set[str]:
    """Return the labels zz1zz, … in fenced blocks and code spans; in a block without an end only if it counts."""
    found: set[str] = set()
    for token in _MARKDOWN.parse(f"{text}\n\n{_END}"):
        if token.type == "fence" and (open_code_counts or _END not in token.content):
            found.update(_LABEL.findall(f"{token.info} {token.content}"))
        elif token.type == "inline":
            found.update(label for span in _code_spans(token) for label in _LABEL.findall(span.content))
    return found


_INDENTED_QUOTE = re.compile(r"(?m)^(?: {0,3}\t| {4})[ \t]*>")


def is_disputed(text: str) -> bool:
    """Tell whether markdown-it reads a text in another way than CommonMark says: a quote whose sign is indented."""
    return _INDENTED_QUOTE.search(text) is not None


_BEGINNING = re.compile(r"[\s\[`]*(w[0-9]+w)")


def routed_from_code(text: str, markers: Markers) -> set[str]:
    """Return the names to which markers route that are code or quoted, wholly or where they begin.

    A name between backticks in a marker that stands in the open is a name.
    """
    routed = {name for addressee in markers.addressees for name in _NAME.findall(addressee)}
    begun = {found[1] for marker in markers if (found := _BEGINNING.match(marker.value)) and marker.kind == "next"}
    if not routed or not any(sign in text for sign in "`~>"):
        return set()
    in_blocks, in_spans = names_in_blocks_and_spans(text)
    return (routed & in_blocks) | (begun & in_spans)


def _code_spans(token: Token) -> Iterator[Token]:
    for child in token.children or ():
        if child.type == "code_inline":
            yield child


# A sign of a list needs a space behind it: "-->" is no quote in a list.
_QUOTED = re.compile(r"[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*>")


def _on_a_quoted_line(name: str, lines: list[str]) -> bool:
    return any(name in line and _QUOTED.match(line) for line in lines)
