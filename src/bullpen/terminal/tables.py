"""Printing for people: tables and texts, coloured on a terminal, plain elsewhere, and always made safe."""

import os
import sys
from collections.abc import Iterable, Sequence

from bullpen.terminal.cells import cut, width
from bullpen.text.clean import one_line
from bullpen.text.safe import printable

INDENT = "  "
BOLD, CYAN = "1", "1;36"


def safe_line(text: str) -> str:
    """Return a text on one line that a terminal only shows."""
    return printable(one_line(text)).replace("\t", " ")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their columns. On a terminal, the last column is cut where the line ends.

    Not a table of rich: importing that would make listing conversations a seventh slower, it pads every line with
    spaces, also in a pipe, and when there is little room it cuts the ids, too.
    """
    table = [tuple(columns), *(tuple(map(safe_line, row)) for row in rows)]
    widths = [max(map(width, cells)) for cells in zip(*table, strict=True)]
    left = sum(widths[:-1]) + len(INDENT) * (len(widths) - 1)
    room = max(_columns() - left, width(columns[-1])) if sys.stdout.isatty() else None
    for number, (*cells, last) in enumerate(table):
        padded = [cell + " " * (size - width(cell)) for cell, size in zip(cells, widths, strict=False)]
        line = INDENT.join([*padded, last if room is None else cut(last, room)]).rstrip()
        print(_painted(line, BOLD) if number == 0 else line)


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def print_heading(text: str) -> None:
    """Print a line that stands out."""
    print(_painted(safe_line(text), CYAN))


def print_indented(text: str) -> None:
    """Print a text of any length indented, so that no line of it looks like one of ours."""
    lines = [printable(line) for line in text.splitlines()]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.padding import Padding
        from rich.text import Text

        # A terminal would continue long lines at the margin; rich wraps them.
        Console(highlight=False).print(Padding(Text("\n".join(lines)), (0, 0, 0, len(INDENT)), expand=False))
    else:
        for line in lines:
            print(f"{INDENT}{line}" if line else "")


def _painted(text: str, colour: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"
