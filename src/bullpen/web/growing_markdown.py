"""Markdown while it is written: finished blocks are rendered once, the last one again, and only changes are sent."""

from collections.abc import MutableMapping, Sequence
from html import escape
from typing import Any

from markdown_it.token import Token
from msgspec import Struct

from bullpen.exchange.visible import visible
from bullpen.markers.grammar import find_markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.web.markdown import blocks_of, html_of, plain, render
from bullpen.web.unfinished import completed_code, completed_lines, completed_words

LONGEST_OPEN = 1_000
"""Characters. Of a longer paragraph, list or block of code, the beginning is finished before its end has come."""
LEFT_OPEN = 200
MOST_AT_ONCE = 50_000
"""Characters. Of more, which no model writes at once, the beginning is shown as it was typed."""
LONGEST_READ = 20_000
"""Characters of one block. Of a longer one the beginning is finished, wherever that may be."""

BEGINS_BLOCKS = frozenset(["", *" \t\n#-+*_=>|`~[:"])
"""At the beginning of a line, these may make something else of it than a paragraph; so may a number."""

# They have ended if anything follows; a list or a quote may still continue.
ENDED_BY_ANYTHING = frozenset({"heading_open", "hr", "fence"})
ENDED_BY_EMPTY_LINE = frozenset({"paragraph_open", "table_open"})


class Growth(Struct, frozen=True, kw_only=True):
    """How a rendering has changed since the version before. Its open part is what may still change."""

    version: int
    keep: int
    """How much of the open part stays. All lengths are in UTF-16 units, as a page counts."""
    rest: str
    """What follows it from now on."""
    done: int
    """How much at the beginning of the open part is finished now."""


class GrowingMarkdown:
    """The rendering of one text that grows."""

    def __init__(self, text: str = "", *, version: int = 0) -> None:
        self.version = version
        self.done_html: list[str] = []
        self.open_html = ""
        self._source = ""
        """The text of the open part."""
        self._new = [text] if text else []
        self._names: MutableMapping[str, Any] = {}
        """What the parser remembers: addresses of links, levels of headings."""
        self._is_continued = False
        """Whether the open part continues a block whose beginning is finished."""

    @property
    def html(self) -> str:
        """The whole rendering."""
        return "".join([*self.done_html, self.open_html])

    @property
    def has_grown(self) -> bool:
        """Whether there is text that is not rendered yet."""
        return bool(self._new)

    def add(self, text: str) -> None:
        """Take more text."""
        self._new.append(text)

    def grow(self) -> Growth | None:
        """Render what has been added, and return what changes; None if nothing was added."""
        if not self._new:
            return None
        self._source = _without_markers(visible("".join([self._source, *self._new])))
        self._new.clear()
        done = [*self._finish_flood(), *self._finish_blocks(), *self._finish_beginning()]
        open_html = self._rendered_open()
        before, after = self.open_html, "".join([*done, open_html])
        keep = _common_length(before, after)
        self.done_html += done
        self.open_html = open_html
        self.version += 1
        return Growth(
            version=self.version,
            keep=_units(after[:keep]),
            rest=after[keep:],
            done=sum(_units(html) for html in done),
        )

    def _finish_flood(self) -> list[str]:
        """Finish most of a text that is too long to be read, without reading it."""
        if len(self._source) <= MOST_AT_ONCE:
            return []
        end = self._source.rfind("\n", 0, len(self._source) - LONGEST_READ) + 1 or len(self._source) - LONGEST_READ
        typed, self._source, self._is_continued = self._source[:end], self._source[end:], False
        return [plain(typed)]

    def _finish_blocks(self) -> list[str]:
        """Render every block that has ended, and forget its text."""
        tokens = blocks_of(self._source, self._names)
        last = _last_block(tokens)
        if last == 0 or not _has_ended(tokens, last, self._source):
            return []
        lines = self._source.split("\n")
        start = _first_line(tokens[last])
        self._source = "\n".join(lines[start:])
        html = html_of(tokens[:last], self._names)
        if not self._is_continued:
            return [html]
        self._is_continued = False
        # Only the first of the blocks continues the one before it.
        first = _end_of_block(tokens)
        return [_part(html_of(tokens[:first], self._names), "continued"), html_of(tokens[first:last], self._names)]

    def _finish_beginning(self) -> list[str]:
        """Render the beginning of a long paragraph, list or block of code."""
        done = []
        while len(self._source) > LONGEST_OPEN:
            cut = _beginning(self._source, blocks_of(self._source, self._names))
            if cut is None:
                break
            html, self._source = cut
            done.append(_part(html, "cut continued" if self._is_continued else "cut"))
            self._is_continued = True
        return done

    def _rendered_open(self) -> str:
        names = {**self._names, "headings": [*self._names.get("headings", ())]}
        tokens = blocks_of(self._source, names)
        leaf = next((token for token in reversed(tokens) if token.type in ("inline", "fence", "code_block")), None)
        if leaf is not None and leaf.type != "inline":
            leaf.content = completed_code(leaf.content)
        else:
            source = completed_lines(self._source)
            tokens = tokens if source == self._source else blocks_of(source, names)
            inline = next((token for token in reversed(tokens) if token.type == "inline"), None)
            if inline is not None and source.rstrip().endswith(inline.content.rstrip()[-LEFT_OPEN:]):
                inline.content = completed_words(inline.content)
        html = html_of(tokens, names)
        return _part(html, "continued") if self._is_continued and html else html


def _without_markers(source: str) -> str:
    """Return a text without its markers; the white space at its end may be needed by what follows."""
    found = find_markers(source) if "[" in source or "［" in source else None
    if found is None or not found.spans:
        return source
    return strip_all_markers(source) + source[len(source.rstrip()) :]


def _last_block(tokens: Sequence[Token]) -> int:
    """Return where the last block of the outermost level begins."""
    starts = [index for index, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
    return starts[-1] if starts else 0


def _end_of_block(tokens: Sequence[Token]) -> int:
    """Return where the first block of the outermost level ends."""
    return next(index for index, token in enumerate(tokens) if token.level == 0 and token.nesting <= 0) + 1


def _has_ended(tokens: Sequence[Token], last: int, source: str) -> bool:
    """Return whether everything before the last block is certain to stay as it is."""
    start = _first_line(tokens[last])
    lines = source.split("\n")
    if start < len(lines) - 1:
        return True
    # Its first line may still become something else, which may belong to the block before.
    before = next(token for token in reversed(tokens[:last]) if token.level == 0 and token.nesting >= 0)
    has_gap = not lines[start - 1].strip()
    return before.type in ENDED_BY_ANYTHING or (has_gap and before.type in ENDED_BY_EMPTY_LINE)


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _beginning(source: str, tokens: Sequence[Token]) -> tuple[str, str] | None:
    """Return the beginning of a long block as HTML, and the text after it; None if it cannot be divided."""
    match tokens[0].type if tokens else "":
        case "fence":
            found = _beginning_of_code(source)
        case "bullet_list_open" | "ordered_list_open":
            found = _beginning_of_list(source, tokens)
        case "paragraph_open":
            found = _beginning_of_paragraph(source)
        case _:
            found = None
    return found or (_beginning_anywhere(source) if len(source) > LONGEST_READ else None)


def _beginning_of_code(source: str) -> tuple[str, str] | None:
    opening, _, code = source.partition("\n")
    end = code.rfind("\n", 0, max(0, len(code) - LEFT_OPEN)) + 1
    if end == 0:
        return None
    fence = opening.strip()[: len(opening.strip()) - len(opening.strip().lstrip("`~"))]
    return render(f"{opening}\n{code[:end]}{fence}"), f"{opening}\n{code[end:]}"


def _beginning_of_list(source: str, tokens: Sequence[Token]) -> tuple[str, str] | None:
    """Divide before the last item that certainly is one: a line that is still being written may become another."""
    lines = source.split("\n")
    starts = [_first_line(token) for token in tokens if token.type == "list_item_open" and token.level == 1]
    start = next((line for line in reversed(starts) if line < len(lines) - 1), 0)
    return (render("\n".join(lines[:start])), "\n".join(lines[start:])) if start else None


def _beginning_of_paragraph(source: str) -> tuple[str, str] | None:
    """Divide at a space at which no emphasis is open, and before something that begins no other kind of block."""
    if len(source) > LONGEST_READ:
        return None
    end = len(source) - LEFT_OPEN
    while (end := source.rfind(" ", 0, end)) > LEFT_OPEN:
        beginning, rest = source[:end], source[end + 1 :]
        if rest[:1] not in BEGINS_BLOCKS and not rest[:1].isdigit() and completed_words(beginning) == beginning:
            return render(beginning), rest
    return None


def _beginning_anywhere(source: str) -> tuple[str, str]:
    """Divide a block that comes too fast or cannot be divided well; it is shown as it was typed."""
    end = len(source) - LEFT_OPEN
    return f"<p>{escape(source[:end])}</p>\n", source[end:]


def _part(html: str, kind: str) -> str:
    return f'<div class="part {kind}">{html}</div>\n'


def _common_length(one: str, other: str) -> int:
    """Return how many characters at the beginning of two texts are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", errors="surrogatepass")) // 2
