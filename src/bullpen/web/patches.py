"""A file of a patch as a page shows it: rows with numbers and colours, a part of them at a time, one or two columns."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from bullpen.exchange.visible import visible
from bullpen.file_changes import FolderChanges
from bullpen.view.diff import SIGNS, FileDiff, Hunk, Row, file_diffs
from bullpen.view.syntax import Piece, colored_rows

MOST_ROWS = 500
"""Rows that are sent at once; the page asks for more."""
COLORED_TOGETHER = 200
MOST_COLUMNS = 2_000
"""Of a line that are shown: a minified file is one line."""
CLASSES = {"keyword": "k-k", "name": "k-nf", "string": "k-s", "number": "k-m", "comment": "k-c1"}


class ShownRow(Struct, frozen=True, kw_only=True):
    """A row, ready to be shown."""

    row: Row
    sign: str
    html: Markup


class ShownHunk(Struct, frozen=True, kw_only=True):
    """Rows that follow each other: one column, or two of the same length."""

    heading: str
    rows: tuple[ShownRow, ...] = ()
    columns: tuple[tuple[ShownRow | None, ...], ...] = ()


class ShownPart(Struct, frozen=True, kw_only=True):
    """Some rows of a file."""

    hunks: tuple[ShownHunk, ...]
    start: int
    end: int
    rows: int
    """How many the file has in all."""

    @property
    def left(self) -> int:
        """How many come after these."""
        return self.rows - self.end


@lru_cache(maxsize=4)
def files_of(changes: FolderChanges) -> tuple[FileDiff, ...]:
    """Return the files of a patch. Pages ask for one file after the other of the same patch."""
    return tuple(file_diffs(changes))


def shown_part(diff: FileDiff, start: int, *, is_split: bool) -> ShownPart:
    """Return some rows of a file, from one on."""
    is_windows = all(row.text.endswith("\r") for row in diff.rows if row.kind != "note")
    hunks = tuple(_shown(diff.path, hunk, is_split, is_windows) for hunk in _from(diff.hunks, start))
    rows = sum(len(hunk.rows) for hunk in diff.hunks)
    return ShownPart(hunks=hunks, start=start, end=min(rows, start + MOST_ROWS), rows=rows)


def _from(hunks: Iterable[Hunk], start: int) -> Iterator[Hunk]:
    """Yield the rows from one on, as many as are sent at once. Only the beginning of a hunk has its heading."""
    room = MOST_ROWS
    for hunk in hunks:
        if start >= len(hunk.rows) or room <= 0:
            start = max(0, start - len(hunk.rows))
            continue
        rows = hunk.rows[start : start + room]
        yield Hunk(heading="" if start else hunk.heading, rows=rows)
        start, room = 0, room - len(rows)


def _shown(path: str, hunk: Hunk, is_split: bool, is_windows: bool) -> ShownHunk:
    rows = [replace(row, text=row.text.removesuffix("\r")) for row in hunk.rows] if is_windows else list(hunk.rows)
    html = dict(zip(map(id, hunk.rows), _in_colors(path, rows), strict=True))
    made = {id(row): ShownRow(row=row, sign=SIGNS[row.kind], html=html[id(row)]) for row in hunk.rows}
    if not is_split:
        return ShownHunk(heading=hunk.heading, rows=tuple(made.values()))
    pairs = hunk.pairs
    left = tuple(made[id(pair.left)] if pair.left else None for pair in pairs)
    right = tuple(made[id(pair.right)] if pair.right else None for pair in pairs)
    return ShownHunk(heading=hunk.heading, columns=(left, right))


def _in_colors(path: str, rows: Sequence[Row]) -> Iterator[Markup]:
    left = iter(rows)
    while together := list(islice(left, COLORED_TOGETHER)):
        for pieces in colored_rows(path, together):
            yield _html(pieces)


def _html(pieces: Sequence[Piece]) -> Markup:
    """Return a row as HTML. All of it is text, and nothing in it hides."""
    room, html = MOST_COLUMNS, Markup()
    for kind, text in pieces:
        shown = visible(text[:room])
        html += Markup('<span class="{}">{}</span>').format(CLASSES[kind], shown) if kind else Markup.escape(shown)
        room -= len(text)
        if room < 0:
            # A cut piece is the last one, or all that follow are left out, too.
            more = sum(len(other) for _, other in pieces) - MOST_COLUMNS
            return html + Markup('<span class="faint">… {:,} more characters</span>').format(more)
    return html
