"""A comment on a line of a diff: a message to the member who wrote it, with the place and the lines around it."""

import re
from collections.abc import Sequence

from msgspec import Struct

from bullpen.errors import BullpenError
from bullpen.file_changes import ChangeRecord
from bullpen.text.clean import one_line
from bullpen.view.diff import SIGNS, FileDiff, Hunk, Row

AROUND = 3
"""Lines before it and after it that are quoted."""
MOST_COLUMNS = 300
_TICKS = re.compile("`+")


class DiffLine(Struct, frozen=True, kw_only=True):
    """A line of a diff that somebody writes about."""

    diff: FileDiff
    hunk: Hunk
    place: int
    """Which row of the hunk it is."""

    @property
    def row(self) -> Row:
        """The line itself."""
        return self.hunk.rows[self.place]

    @property
    def name(self) -> str:
        """Where it is: "src/login.py:12"."""
        row = self.row
        if row.new is None:
            return f"{self.diff.renamed_from or self.diff.path}:{row.old} (removed)"
        return f"{self.diff.path}:{row.new}"

    @property
    def around(self) -> Sequence[Row]:
        """The line with those before it and after it."""
        return self.hunk.rows[max(0, self.place - AROUND) : self.place + AROUND + 1]

    @property
    def quoted(self) -> str:
        """These lines with their numbers, and a mark before the one that is meant."""
        width = max(len(str(row.new or row.old or "")) for row in self.around)
        return "\n".join(f"{'>' if row is self.row else ' '} {_numbered(row, width)}" for row in self.around)


def line_of(diff: FileDiff, number: int, *, is_removed: bool = False) -> DiffLine:
    """Return a line by its number in the new file, or in the old one if it was removed."""
    for hunk in diff.hunks:
        for place, row in enumerate(hunk.rows):
            if (
                row.kind != "note"
                and number == (row.old if is_removed else row.new)
                and (row.new is None) == is_removed
            ):
                return DiffLine(diff=diff, hunk=hunk, place=place)
    raise BullpenError(f"There is no line {number} in what was changed in {one_line(diff.path)}.")


def comment_on(record: ChangeRecord, line: DiffLine, text: str) -> str:
    """Return a comment on a line as a message to the member who wrote it; to nobody by name if a person did.

    Nothing in the path or in the lines is read as a name or a marker: they are code.
    """
    if not text.strip():
        raise BullpenError("The comment is empty. Write what you want to say about this line.")
    whom = f"@{record.member} " if record.kind in ("turn", "merge") and record.member else ""
    return f"{whom}{_span(line.name)}\n\n{_block(line.quoted)}\n\n{text.strip()}"


def _numbered(row: Row, width: int) -> str:
    return f"{row.new or row.old or '':>{width}} {SIGNS[row.kind] or ' '} {_short(row.text)}".rstrip()


def _short(text: str) -> str:
    return one_line(text) if len(text) <= MOST_COLUMNS else f"{one_line(text[:MOST_COLUMNS])}…"


def _span(text: str) -> str:
    said = one_line(text)
    ticks = "`" * _more_than_in(said)
    room = " " if said.startswith("`") or said.endswith("`") else ""
    return f"{ticks}{room}{said}{room}{ticks}"


def _block(text: str) -> str:
    ticks = "`" * max(3, _more_than_in(text))
    return f"{ticks}\n{text}\n{ticks}"


def _more_than_in(text: str) -> int:
    """Return how many backticks end nothing in a text."""
    return 1 + max((len(run) for run in _TICKS.findall(text)), default=0)
