"""HelpScreen: every key and every command, in a table to search in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, zip_longest
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.help import all_sections
from bullpen.view.state import ConversationView

WIDE = 80
KEYS_IN_WIDE, KEYS_IN_NARROW = 30, 18
"""Columns for the keys."""
EMPTY = Content("")

Rows = list[tuple[str, str]]


class HelpTable(Widget):
    """Every section with its rows, as one text: a widget for each row takes seconds to open."""

    DEFAULT_CSS = "HelpTable { height: auto; color: $text-muted; }"

    def __init__(self, sections: Mapping[str, Rows]) -> None:
        super().__init__()
        self._sections = sections
        self.shown = dict(sections)
        """What has the words that are searched for."""

    def search(self, words: Sequence[str]) -> None:
        """Show the rows that have all of these words."""
        found = {title: [row for row in rows if has(row, words)] for title, rows in self._sections.items()}
        self.shown = {title: rows for title, rows in found.items() if rows}
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Return how many lines there are in this width."""
        return len(self._lines(width))

    def render(self) -> Content:
        """Return all lines."""
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        keys_width = KEYS_IN_WIDE if self.app.size.width >= WIDE else KEYS_IN_NARROW
        return [
            line for title, rows in self.shown.items() for line in section_lines(title, rows, keys_width, max(1, width))
        ]


class HelpScreen(ModalScreen[None]):
    """A table of the keys, by where they work, and of the commands; typing keeps the rows that have these words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1", "leave", "Back"),
        Binding("up", "scroll('up')", "Up", show=False),
        Binding("down", "scroll('down')", "Down", show=False),
        Binding("pageup", "scroll('page_up')", "Page up", show=False),
        Binding("pagedown", "scroll('page_down')", "Page down", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical { width: 100; max-width: 96%; height: auto; max-height: 96%; border: round $border;
        padding: 0 1; background: $surface; }
    HelpScreen Input, HelpScreen Input:focus { border: none; height: 1; background: $panel; margin: 0 0 1 0; }
    HelpScreen VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    """

    def __init__(self, view: ConversationView, keys: Mapping[str, Rows]) -> None:
        super().__init__()
        sections = all_sections(view, SCREEN_COMMANDS)
        first = {title: sections.pop(title) for title in ("Now", "Commands")}
        self._table = HelpTable({**first, **keys, **sections})

    def compose(self) -> ComposeResult:
        """Yield the line to search in, and the table."""
        with Vertical():
            yield Input(placeholder="Search …  esc: back")
            with VerticalScroll(can_focus=False):
                yield self._table

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows that have all of these words."""
        self._table.search(event.value.casefold().split())

    def action_scroll(self, where: str) -> None:
        """Scroll; the line to search in keeps the focus."""
        table = self.query_one(VerticalScroll)
        getattr(table, f"scroll_{where}")(animate=False)

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


def has(row: tuple[str, str], words: Iterable[str]) -> bool:
    """Return whether all of these words are in a row."""
    searched = " ".join(row).casefold()
    return all(word in searched for word in words)


def section_lines(title: str, rows: Rows, keys_width: int, width: int) -> Iterator[Content]:
    """Yield a title, the rows below it, every other one on a lighter ground, and an empty line."""
    yield Content.styled(title, "bold $text-primary")
    yield Content.styled("─" * width, "$border-blurred")
    for row, ground in zip(rows, cycle(("on $boost", "")), strict=False):
        for line in row_lines(*row, keys_width, width):
            yield line.stylize(ground) if ground else line
    yield EMPTY


def row_lines(keys: str, words: str, keys_width: int, width: int) -> Iterator[Content]:
    """Yield a row in two columns, so that a long text continues below its beginning."""
    left = Content.styled(keys, "$foreground").wrap(keys_width - 1)
    right = Content(words).wrap(max(1, width - keys_width))
    for one, other in zip_longest(left, right, fillvalue=EMPTY):
        yield Content.assemble(filled(one, keys_width), filled(other, width - keys_width))


def filled(line: Content, width: int) -> Content:
    """Return a line with spaces up to a width."""
    return line.pad_right(max(0, width - line.cell_length))
