"""What an edit tool changes, as a few coloured lines."""

from collections.abc import Iterator, Sequence

from textual.content import Content

from bullpen.text.numbers import counted
from bullpen.tui.text import code_line, one_line
from bullpen.view.diff import SIGNS, FileDiff, Row
from bullpen.view.syntax import Piece, colored_rows

ROW_STYLES = {"added": "on $success 15%", "removed": "on $error 15%", "context": "", "note": "dim italic"}
SIGN_STYLES = {"added": "$text-success", "removed": "$text-error", "context": "", "note": ""}
PIECE_STYLES = {
    "": "",
    "keyword": "$text-secondary",
    "name": "$text-primary",
    "string": "$text-success",
    "number": "$text-warning",
    "comment": "dim italic",
}
BETWEEN = "⋯"


def edits_content(files: Sequence[FileDiff], most: int) -> Content:
    """Return files with their rows, at most this many lines."""
    lines = list(_lines(files))
    left = len(lines) - most
    more = [Content.styled(f"… {counted(left, 'more line')}", "dim")] if left > 0 else []
    return Content("\n").join([*lines[:most], *more])


def _lines(files: Sequence[FileDiff]) -> Iterator[Content]:
    for file in files:
        yield Content.assemble((one_line(file.title, 100), "bold"), (f"  {file.about}", "dim"))
        for number, hunk in enumerate(file.hunks):
            if number:
                yield Content.styled(BETWEEN, "dim")
            for row, pieces in zip(hunk.rows, colored_rows(file.path, hunk.rows), strict=True):
                yield _line(row, pieces)


def _line(row: Row, pieces: Sequence[Piece]) -> Content:
    text = Content.assemble(*((code_line(text), PIECE_STYLES[kind]) for kind, text in pieces))
    line = Content.assemble((f"{SIGNS[row.kind] or ' '} ", SIGN_STYLES[row.kind]), text)
    return line.stylize_before(ROW_STYLES[row.kind]) if ROW_STYLES[row.kind] else line
