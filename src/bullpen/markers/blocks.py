"""The kind of a Markdown line, given the lines before it: code, quote, or text, and of which paragraph.

It follows https://spec.commonmark.org/0.31.2/#appendix-a-parsing-strategy as far as markers need it. HTML is text, as
on our pages, and so are indented lines.
"""

from msgspec import Struct

from bullpen.text.patterns import pattern

_FENCE = pattern(r"(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = pattern(r"#{1,6}(?:[ \t]|$)")
_RULE = pattern(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE = pattern(r"(?:=+|-+)[ \t]*$")
_LONE_RETURN = pattern(r"\r(?!\n)")
_ITEM = pattern(r"([-*+]|([0-9]{1,9})[.)])(?:[ \t]|$)")
_SIGNS = frozenset(">`~#=-*_+0123456789")
CODE_INDENT = 4
# Every line may continue all of them, so there must be a limit. Nobody nests that deep.
MOST_NESTED = 32


class _Container(Struct):
    width: int
    """Columns that continue a list item; 0 for a quote."""
    is_empty: bool = False
    """Whether the item has no text yet: it ends at an empty line."""


def normal_line_breaks(text: str) -> str:
    """Return a text of the same length in which a lone carriage return ends a line as a line feed does."""
    return _LONE_RETURN.sub("\n", text) if "\r" in text else text


class BlockReader:
    """Knows which quotes and list items the next line is in."""

    def __init__(self, depth: int = 0) -> None:
        """Begin a text that is itself inside `depth` quotes."""
        self._depth = depth
        self._containers: list[_Container] = []
        self.fence = ""
        self._in_paragraph = False
        self.continues = False
        """Whether the last line belongs to the same paragraph, or to the same fenced block, as the one before."""
        self.is_code = False
        """Whether the last line is part of a fenced block, in a quote, too."""

    def copy(self) -> "BlockReader":
        """Return a reader in the same state, to look ahead."""
        other = BlockReader(self._depth)
        other._containers = [_Container(one.width, one.is_empty) for one in self._containers]
        other.fence, other._in_paragraph = self.fence, self._in_paragraph
        other.continues, other.is_code = self.continues, self.is_code
        return other

    @property
    def is_nested(self) -> bool:
        """Whether the last line was within a list item or a quote."""
        return bool(self._containers)

    @property
    def may_nest(self) -> bool:
        """Whether one more list item or quote may be nested in the last line's containers."""
        return self._may_nest(len(self._containers))

    @property
    def is_inside_quote(self) -> bool:
        """Whether the whole text is inside a quote."""
        return self._depth > 0

    @property
    def in_paragraph(self) -> bool:
        """Whether the next line may belong to the same paragraph as the last."""
        return self._in_paragraph

    def leave_all(self, *, in_paragraph: bool = False) -> None:
        """Continue outside of every list item, quote and fenced block."""
        self._containers, self.fence, self._in_paragraph = [], "", in_paragraph

    def inside_quote(self) -> "BlockReader":
        """Return a reader for the content of a quote that begins here."""
        return BlockReader(self._depth + 1)

    def leave_quote_open(self, inside: "BlockReader") -> None:
        """Continue after a quote whose lines were read by another reader."""
        self._containers = [_Container(0), *inside._containers]
        self.fence, self._in_paragraph = inside.fence, inside._in_paragraph

    def read(self, line: str) -> str:
        """Return the kind of a line: "code", "quote", "text" that begins a block, "more" of a paragraph, "blank"."""
        line = line.removesuffix("\r")
        if "\t" in line:
            line = _with_spaces(line)
        rest, matched = self._continued(line)
        if self.fence:
            if matched == len(self._containers):
                self._close_fence(rest)
                self.continues = True
                return "code"
            self.fence, self._in_paragraph = "", False
        self.continues = self.is_code = False
        return self._begun(rest, matched)

    def _continued(self, line: str) -> tuple[str, int]:
        """Return the rest of a line after the markers of the containers that it continues, and their number."""
        for number, container in enumerate(self._containers):
            stripped = line.lstrip(" ")
            indent = len(line) - len(stripped)
            if container.width:
                if not stripped and container.is_empty:
                    return line, number
                if stripped and indent < container.width:
                    return line, number
                container.is_empty = False
                line = line[container.width :]
            elif stripped.startswith(">") and indent < CODE_INDENT:
                line = _after_quote_marker(stripped)
            else:
                return line, number
        return line, len(self._containers)

    def _close_fence(self, rest: str) -> None:
        stripped = rest.lstrip(" ")
        run = stripped.rstrip(" \t")
        if len(rest) - len(stripped) < CODE_INDENT and len(run) >= len(self.fence) and not run.strip(self.fence[0]):
            self.fence = ""

    def _begun(self, rest: str, matched: int) -> str:
        """Return the kind of the rest of a line that is not in a fenced block, and open its containers."""
        opened: list[_Container] = []
        in_paragraph = self._in_paragraph and matched == len(self._containers)
        while stripped := rest.lstrip(" "):
            indent = len(rest) - len(stripped)
            if indent >= CODE_INDENT:
                return self._text(matched, opened, in_paragraph, begins_paragraph=False)
            sign = stripped[0] if stripped[0] in _SIGNS else ""
            if sign and (kind := self._block_of_one_line(stripped, matched, opened, in_paragraph)):
                return kind
            container, rest = _container(stripped, indent, in_paragraph) if sign else (None, rest)
            if container is None or not self._may_nest(matched + len(opened)):
                return self._text(matched, opened, in_paragraph, begins_paragraph=True)
            opened.append(container)
            in_paragraph = False
        self._leaf(matched, opened, "text")
        return self._quoted_or("blank")

    def _block_of_one_line(
        self, stripped: str, matched: int, opened: list[_Container], in_paragraph: bool
    ) -> str | None:
        """Return the kind of a line that opens a fenced block, or is a block of its own; None if it is neither."""
        sign = stripped[0]
        if sign in "`~" and (fence := _FENCE.match(stripped)):
            self._leaf(matched, opened, "code")
            self.fence, self.is_code = fence[1], True
            return "code"
        is_heading = (sign == "#" and _HEADING.match(stripped)) or (
            in_paragraph and sign in "=-" and _UNDERLINE.match(stripped)
        )
        if is_heading or (sign in "-*_" and _RULE.match(stripped)):
            return self._leaf(matched, opened, "text")
        return None

    def _text(self, matched: int, opened: list[_Container], in_paragraph: bool, *, begins_paragraph: bool) -> str:
        """Return the kind of a line of text: more of a paragraph, or the beginning of a paragraph or block."""
        if self._in_paragraph and not opened and matched < len(self._containers):
            self.continues = True
            return _quoted_or("more", self._containers[:matched])
        self.continues = in_paragraph
        if in_paragraph:
            return self._quoted_or("more")
        kind = self._leaf(matched, opened, "text")
        self._in_paragraph = begins_paragraph
        return kind

    def _may_nest(self, containers: int) -> bool:
        return self._depth + containers < MOST_NESTED

    def _leaf(self, matched: int, opened: list[_Container], kind: str) -> str:
        """Leave the containers that a line does not continue, enter those that it opens, and begin a block."""
        self._containers[matched:] = opened
        self._in_paragraph = False
        return self._quoted_or(kind)

    def _quoted_or(self, kind: str) -> str:
        return _quoted_or(kind, self._containers)


def _quoted_or(kind: str, containers: list[_Container]) -> str:
    return "quote" if any(not container.width for container in containers) else kind


def _with_spaces(line: str) -> str:
    """Return a line with the tabs before its text as spaces."""
    text = line.lstrip(" \t>-*+0123456789.)")
    before = line[: len(line) - len(text)]
    return before.expandtabs(CODE_INDENT) + text


def _after_quote_marker(stripped: str) -> str:
    return stripped[2:] if stripped[1:2] == " " else stripped[1:]


def _container(stripped: str, indent: int, in_paragraph: bool) -> tuple[_Container | None, str]:
    """Return the quote or list item that a line opens, and the rest of the line in it."""
    if stripped[0] == ">":
        return _Container(0), _after_quote_marker(stripped)
    item = _ITEM.match(stripped)
    if not item:
        return None, stripped
    after = stripped[item.end(1) :]
    text = after.lstrip(" ")
    # Within a paragraph, neither an empty item can begin nor one that is not the first.
    if in_paragraph and (not text or item[2] not in (None, "1")):
        return None, stripped
    width = indent + item.end(1)
    if not text:
        return _Container(width + 1, is_empty=True), ""
    spaces = len(after) - len(text)
    if spaces > CODE_INDENT:
        spaces = 1
    return _Container(width + spaces), after[spaces:]
