"""HelpScreen: every key and every command."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.commands import COMMANDS, help_lines

WIDE = 80

Rows = list[tuple[str, str]]


class HelpScreen(ModalScreen[None]):
    """Keys by where they work, then the commands."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1", "leave", "Back")]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 96; max-width: 96%; height: auto; max-height: 92%; border: round $border;
        padding: 0 2; scrollbar-size-vertical: 1;
        background: $surface; }
    HelpScreen .heading { text-style: bold; margin: 1 0 0 0; }
    HelpScreen .heading:first-of-type { margin: 0; }
    HelpScreen .row { height: auto; }
    HelpScreen .keys { width: 29; padding: 0 1 0 0; color: $text-primary; }
    HelpScreen.-narrow .keys { width: 18; }
    HelpScreen .words { width: 1fr; }
    """

    def __init__(self, sections: Mapping[str, Rows]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        """Yield every section with its rows."""
        commands = list(help_lines([*COMMANDS.values(), *SCREEN_COMMANDS]))
        with VerticalScroll():
            for title, rows in {**self._sections, "Commands": commands}.items():
                yield Static(title, classes="heading", markup=False)
                yield from (_row(keys, words) for keys, words in rows)

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


def _row(keys: str, words: str) -> Horizontal:
    """Return two columns, so that a long text continues below its beginning."""
    return Horizontal(
        Static(keys, classes="keys", markup=False), Static(words, classes="words", markup=False), classes="row"
    )


NAMES = {
    "question_mark": "?",
    "slash": "/",
    "up": "↑",
    "down": "↓",
    "escape": "esc",
    "shift+up": "shift+↑",
    "shift+down": "shift+↓",
}


def rows(bindings: Iterable[BindingType]) -> list[tuple[str, str]]:
    """Return the keys of each action, and what it does: in full where the footer has only a word for it."""
    found: dict[str, tuple[list[str], str]] = {}
    for binding in bindings:
        if isinstance(binding, Binding):
            keys, _ = found.setdefault(binding.action, ([], binding.tooltip or binding.description))
            keys += [_name(key) for key in binding.key.split(",")]
    return [(" ".join(keys), description) for keys, description in found.values()]


def _name(key: str) -> str:
    name = NAMES.get(key, key)
    return name.upper() if name[0] == "f" and name[1:].isdigit() else name
