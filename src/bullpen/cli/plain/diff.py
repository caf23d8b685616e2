"""Changes of files as lines for a terminal or a pipe, all of them safe."""

from collections.abc import Iterator, Sequence

from bullpen.file_changes import ChangeRecord
from bullpen.terminal.colors import Colours
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import local_time
from bullpen.text.safe import printable
from bullpen.view.change_lookup import OF_TURNS
from bullpen.view.changes import Changes, group_of, record_words
from bullpen.view.combined_changes import without_repeats
from bullpen.view.diff import SIGNS, FileDiff, Hunk, Row, file_diffs
from bullpen.view.syntax import Piece, colored_rows

ROW_COLOURS = {"added": "green", "removed": "red", "context": "", "note": "dim"}
PIECE_COLOURS = {"": "", "keyword": "bold", "name": "blue", "string": "yellow", "number": "cyan", "comment": "dim"}
TAB = 4
MOST_COLORED = 500
"""Rows that are coloured together."""


def diff_lines(records: Sequence[ChangeRecord], colours: Colours) -> Iterator[str]:
    """Yield who changed what, then each file with its rows; what was merged as it was is only named."""
    shown = without_repeats(records)
    for number, record in enumerate(records):
        yield from [""] if number else []
        yield from _heading(record, colours)
        for file in file_diffs(record.changes) if record in shown else ():
            yield ""
            yield from _file_lines(file, colours)


def stat_lines(
    records: Sequence[ChangeRecord], colours: Colours, combined: Sequence[ChangeRecord] = ()
) -> Iterator[str]:
    """Yield the files with how many lines were added and removed, all records together, or as they were combined."""
    for record in records:
        yield from _heading(record, colours)
    group = group_of(without_repeats(combined or records), key="", title="")
    yield ""
    for file in group.files:
        yield f"{safe_line(file.title)}  {colours.paint(file.about, 'dim')}"
    yield group.summary


def list_rows(records: Sequence[ChangeRecord], changes: Changes) -> Iterator[tuple[str, str]]:
    """Yield each change with how much it is and what shows its lines, then all together."""
    for group, record in zip(changes.turns, records, strict=True):
        shows = f"  /diff {record.turn_id}" if record.kind in OF_TURNS else ""
        yield group.title, f"{group.summary}{shows}"
    yield changes.together.title, f"{changes.together.summary}  /diff all"


def _heading(record: ChangeRecord, colours: Colours) -> Iterator[str]:
    yield colours.paint(safe_line(f"{record_words(record)}  {local_time(record.at)}".rstrip()), "bold", "cyan")


def _file_lines(file: FileDiff, colours: Colours) -> Iterator[str]:
    yield f"{colours.paint(safe_line(file.title), 'bold')}  {colours.paint(file.about, 'dim')}"
    if file.note:
        yield colours.paint(safe_line(file.note), "yellow")
    for hunk in file.hunks:
        yield colours.paint(safe_line(hunk.heading), "dim")
        yield from _hunk_lines(file.path, hunk, colours)


def _hunk_lines(path: str, hunk: Hunk, colours: Colours) -> Iterator[str]:
    width = max((len(str(max(row.old or 0, row.new or 0))) for row in hunk.rows), default=1)
    for begin in range(0, len(hunk.rows), MOST_COLORED):
        rows = hunk.rows[begin : begin + MOST_COLORED]
        for row, pieces in zip(rows, colored_rows(path, rows), strict=True):
            yield _row_line(row, pieces, width, colours)


def _row_line(row: Row, pieces: Sequence[Piece], width: int, colours: Colours) -> str:
    colour = ROW_COLOURS[row.kind]
    numbers = f"{row.old or '':>{width}} {row.new or '':>{width}} "
    parts = (colours.paint(_safe(text), *_styles(kind, colour)) for kind, text in pieces)
    sign = colours.paint(SIGNS[row.kind] or " ", colour)
    return f"{colours.paint(numbers, 'dim')}{sign} {''.join(parts)}".rstrip()


def _styles(kind: str, colour: str) -> tuple[str, ...]:
    """Return how a piece looks: in the colour of its row, unless its kind has one of its own."""
    own = PIECE_COLOURS[kind]
    return (own,) if own in ("blue", "yellow", "cyan") else (own, colour)


def _safe(text: str) -> str:
    return printable(text.replace("\t", " " * TAB).replace("\r", "␍"))
