"""The blocks of a text in Markdown: what is code or quoted, and the paragraphs between."""

from collections.abc import Iterator

from msgspec import Struct

from bullpen.markers.blocks import BlockReader
from bullpen.markers.runs import runs


class Block(Struct, frozen=True):
    """Lines that belong together, from their first character to their last."""

    start: int
    end: int
    hidden: bool
    """Whether it is code or a quote."""
    follows_quote: bool = False
    """Whether it is the rest of a paragraph that begins in a quote."""
    is_whole: bool = False
    """Whether it is many paragraphs and quotes, of which no code span leaves its line."""


def blocks(text: str) -> Iterator[Block]:
    """Yield what is hidden in a text and the paragraphs in it, in order. There is no code in what is neither."""
    paragraph: int | None = None
    follows_quote = False
    for kind, start, end in runs(text, BlockReader()):
        if paragraph is not None and kind != "more":
            yield Block(paragraph, start, hidden=False, follows_quote=follows_quote)
            paragraph = None
        if kind in ("code", "quote"):
            # The last line's end stays, so that the line after it still begins one.
            yield Block(start, end - 1, hidden=True)
        elif kind == "whole":
            yield Block(start, end, hidden=False, is_whole=True)
        elif kind in ("text", "more") and paragraph is None:
            paragraph, follows_quote = start, kind == "more"
    if paragraph is not None:
        yield Block(paragraph, len(text), hidden=False, follows_quote=follows_quote)
