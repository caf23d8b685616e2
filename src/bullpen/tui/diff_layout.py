"""DiffLayout: the files of some changes as lines of a screen, as many as there are, each worked out when it is seen."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct
from rich.cells import cell_len, get_character_cell_size

from bullpen.file_changes import ChangeRecord
from bullpen.tui.text import code_line
from bullpen.view.diff import FileDiff, Hunk, Row
from bullpen.view.syntax import Piece, colored_rows

MOST_CHARACTERS = 1_000
"""Of one row that are laid out; the rest is left out."""
CHUNK = 200
"""Rows that are coloured together, when the first of them is seen."""

MOST_ITEMS = 100_000
"""That are laid out; a patch of only line breaks has half a million."""

ItemKind = Literal["record", "file", "note", "hunk", "row", "blank", "cut"]


class Item(Struct, frozen=True, gc=False):
    """What the cursor can be on: a heading, or a row; side by side, two rows."""

    kind: ItemKind
    record: int
    file: int
    hunk: int = 0
    left: int = -1
    """The place of the row in its hunk; side by side, of the one on the left. Below 0: there is none."""
    right: int = -1


class Loaded(Struct, frozen=True):
    """A record with its files, read."""

    record: ChangeRecord
    files: Sequence[FileDiff]


class DiffLayout:
    """Lines for one width. A row that is too long for one line has several."""

    def __init__(self, loaded: Sequence[Loaded], *, text_width: int, is_split: bool) -> None:
        self._loaded = loaded
        self._colored: dict[tuple[int, int, int, int], list[tuple[Piece, ...]]] = {}
        self.is_split = is_split
        self.text_width = max(1, text_width)
        """Columns of one row's text."""
        self.items = list(islice(self._items(), MOST_ITEMS))
        if len(self.items) == MOST_ITEMS:
            self.items.append(Item("cut", self.items[-1].record, self.items[-1].file))
        self.lines: list[tuple[int, int]] = []
        """Each line of the screen: which item, and which part of it."""
        self.first_lines: list[int] = []
        """Where each item begins."""
        for number, item in enumerate(self.items):
            self.first_lines.append(len(self.lines))
            self.lines.extend((number, part) for part in range(self._height(item)))

    def file_of(self, item: Item) -> FileDiff | None:
        """Return the file that an item belongs to."""
        files = self._loaded[item.record].files
        return files[item.file] if 0 <= item.file < len(files) else None

    def record_of(self, item: Item) -> ChangeRecord:
        """Return the record that an item belongs to."""
        return self._loaded[item.record].record

    def hunk_of(self, item: Item) -> Hunk:
        """Return the hunk that a row belongs to."""
        return self._loaded[item.record].files[item.file].hunks[item.hunk]

    def row(self, item: Item, place: int) -> Row | None:
        """Return a row of an item's hunk."""
        return self.hunk_of(item).rows[place] if place >= 0 else None

    def part_of(self, item: Item, place: int, part: int) -> list[Piece]:
        """Return what one line shows of a row: pieces that are safe and fit."""
        row = self.hunk_of(item).rows[place]
        text = _shown(row)
        begin, end = _cut(text, self.text_width, part)
        if len(row.text) > MOST_CHARACTERS:
            return [("", text[begin:end])]
        pieces: list[Piece] = [(kind, code_line(piece)) for kind, piece in self._pieces(item, place)]
        return list(_slice(pieces, begin, end))

    def _items(self) -> Iterator[Item]:
        for number, one in enumerate(self._loaded):
            if len(self._loaded) > 1:
                yield Item("record", number, -1)
            for place, file in enumerate(one.files):
                yield Item("file", number, place)
                if file.note or not file.hunks:
                    yield Item("note", number, place)
                for hunk_place, hunk in enumerate(file.hunks):
                    yield Item("hunk", number, place, hunk_place)
                    yield from self._rows(number, place, hunk_place, hunk)
                yield Item("blank", number, place)

    def _rows(self, number: int, file: int, hunk_place: int, hunk: Hunk) -> Iterator[Item]:
        if not self.is_split:
            yield from (Item("row", number, file, hunk_place, place) for place in range(len(hunk.rows)))
            return
        places = {id(row): place for place, row in enumerate(hunk.rows)}
        for pair in hunk.pairs:
            left = places[id(pair.left)] if pair.left is not None else -1
            right = places[id(pair.right)] if pair.right is not None else -1
            yield Item("row", number, file, hunk_place, left, right)

    def _height(self, item: Item) -> int:
        if item.kind != "row":
            return 1
        rows = self.hunk_of(item).rows
        return max(_parts(_shown(rows[place]), self.text_width) for place in (item.left, item.right) if place >= 0)

    def _pieces(self, item: Item, place: int) -> tuple[Piece, ...]:
        chunk = place // CHUNK
        key = item.record, item.file, item.hunk, chunk
        if key not in self._colored:
            rows = self.hunk_of(item).rows[chunk * CHUNK : (chunk + 1) * CHUNK]
            self._colored[key] = colored_rows(self._loaded[item.record].files[item.file].path, rows)
        return self._colored[key][place % CHUNK]


def _shown(row: Row) -> str:
    """Return the text of a row as it is laid out."""
    text = code_line(row.text[:MOST_CHARACTERS])
    return f"{text}…" if len(row.text) > MOST_CHARACTERS else text


def _parts(text: str, width: int) -> int:
    if text.isascii():
        return max(1, -(-len(text) // width))
    return sum(1 for _ in _cuts(text, width)) if cell_len(text) > width else 1


def _cut(text: str, width: int, part: int) -> tuple[int, int]:
    """Return where a part of a text begins and ends; nothing of it, if it has fewer parts."""
    if text.isascii():
        return part * width, (part + 1) * width
    cuts = list(_cuts(text, width))
    return cuts[part] if part < len(cuts) else (len(text), len(text))


def _cuts(text: str, width: int) -> Iterator[tuple[int, int]]:
    begin = cells = 0
    for place, character in enumerate(text):
        size = get_character_cell_size(character)
        if cells + size > width and place > begin:
            yield begin, place
            begin, cells = place, 0
        cells += size
    yield begin, len(text)


def _slice(pieces: Sequence[Piece], begin: int, end: int) -> Iterator[Piece]:
    at = 0
    for kind, text in pieces:
        part = text[max(0, begin - at) : max(0, end - at)]
        at += len(text)
        if part:
            yield kind, part
