"""HelpScreen: every key and every command."""

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.commands import COMMANDS, help_lines

Rows = list[tuple[str, str]]


class HelpScreen(ModalScreen[None]):
    """Keys by where they work, then the commands."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,question_mark", "leave", "Back")]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 84; max-width: 96%; height: auto; max-height: 92%; border: round $border;
        padding: 0 2; scrollbar-size-vertical: 1;
        background: $surface; }
    """

    def __init__(self, sections: Mapping[str, Rows]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        """Yield one text."""
        parts = [_section(title, rows) for title, rows in self._sections.items()]
        parts.append(_section("Commands", list(help_lines([*COMMANDS.values(), *SCREEN_COMMANDS]))))
        with VerticalScroll():
            yield Static(Content("\n\n").join(parts), markup=False)

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


def _section(title: str, rows: Rows) -> Content:
    lines = [Content.assemble((f"{keys:<27} ", "$text-primary"), words) for keys, words in rows]
    return Content("\n").join([Content.styled(title, "bold"), *lines])
