"""HelpScreen: every key and every command, in a table to search in."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.commands import COMMANDS, WHILE_IT_WORKS, help_lines

WIDE = 80

Rows = list[tuple[str, str]]


class Row(Horizontal):
    """Two columns, so that a long text continues below its beginning."""

    def __init__(self, keys: str, words: str) -> None:
        super().__init__(
            Static(keys, classes="keys", markup=False), Static(words, classes="words", markup=False), classes="row"
        )
        self._searched = f"{keys} {words}".casefold()

    def has(self, words: Iterable[str]) -> bool:
        """Return whether all of these words are in it."""
        return all(word in self._searched for word in words)


class HelpScreen(ModalScreen[None]):
    """A table of the keys, by where they work, and of the commands; typing keeps the rows that have these words."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
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
    HelpScreen .section { height: auto; margin: 0 0 1 0; }
    HelpScreen .heading { text-style: bold; color: $text-primary; border-bottom: solid $border-blurred; }
    HelpScreen .row { height: auto; }
    HelpScreen .row:even { background: $boost; }
    HelpScreen .keys { width: 30; padding: 0 1 0 0; }
    HelpScreen.-narrow .keys { width: 18; }
    HelpScreen .words { width: 1fr; color: $text-muted; }
    """

    def __init__(self, sections: Mapping[str, Rows]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        """Yield the line to search in, and every section with its rows."""
        commands = list(help_lines([*COMMANDS.values(), *SCREEN_COMMANDS]))
        sections = {**self._sections, "An agent that is working": list(WHILE_IT_WORKS), "Commands": commands}
        with Vertical():
            yield Input(placeholder="Search …  esc: back")
            with VerticalScroll(can_focus=False):
                for title, rows in sections.items():
                    with Vertical(classes="section"):
                        yield Static(title, classes="heading", markup=False)
                        yield from (Row(keys, words) for keys, words in rows)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows that have all of these words."""
        words = event.value.casefold().split()
        for section in self.query(".section"):
            rows = section.query(Row)
            for row in rows:
                row.display = row.has(words)
            section.display = any(row.display for row in rows)

    def action_scroll(self, where: str) -> None:
        """Scroll; the line to search in keeps the focus."""
        table = self.query_one(VerticalScroll)
        getattr(table, f"scroll_{where}")(animate=False)

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)
