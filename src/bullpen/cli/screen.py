"""Printing for people: tables and texts, in our colours on a terminal, plain elsewhere. All of it made safe."""

import sys
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bullpen.cli.safe import printable
from bullpen.context.text import one_line
from bullpen.errors import BullpenError

if TYPE_CHECKING:
    from rich.console import Console

INDENT = "  "


def safe_line(text: str) -> str:
    """Return a text on one line that a terminal only shows."""
    return printable(one_line(text)).replace("\t", " ")


def local_time(milliseconds: int, *, seconds: bool = False) -> str:
    """Return a time as the person's clock shows it."""
    try:
        moment = time.localtime(milliseconds / 1000)
    except (ValueError, OverflowError, OSError):
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M", moment) if milliseconds else ""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their columns. The first column is never shortened, and the last one takes the room there is."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        is_last = position == len(columns) - 1
        table.add_column(column, no_wrap=True, overflow="ellipsis", ratio=1 if is_last else None)
    for row in rows:
        table.add_row(*(Text(safe_line(cell), style="bold" if place == 0 else "") for place, cell in enumerate(row)))
    _console().print(table)


def print_heading(text: str) -> None:
    """Print a line that stands out."""
    if sys.stdout.isatty():
        from rich.text import Text

        _console().print(Text(safe_line(text), style="bold cyan"))
    else:
        print(safe_line(text))


def print_indented(text: str) -> None:
    """Print a text of any length to the right of the margin, so that no line of it looks like one of ours."""
    lines = [printable(line) for line in text.splitlines()]
    if sys.stdout.isatty():
        from rich.padding import Padding
        from rich.text import Text

        # A terminal would go on at the margin where a long line ends; rich knows where that is.
        _console().print(Padding(Text("\n".join(lines)), (0, 0, 0, len(INDENT))))
    else:
        for line in lines:
            print(f"{INDENT}{line}" if line else "")


def need_rich() -> None:
    """Raise an error that says how to get the package for tables, if it is not there."""
    if find_spec("rich") is None:
        raise BullpenError("Printing this needs the package rich. Try: pip install 'bullpen[cli]', or use --json.")


def _console() -> "Console":
    need_rich()
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)
