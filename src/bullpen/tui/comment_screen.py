"""CommentScreen: writing about a line of a diff."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from bullpen.tui.text import code_line

MOST_CHARACTERS = 300
"""Of the line that are shown again."""


class CommentScreen(ModalScreen[str | None]):
    """A text to write. It ends with the text, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send", priority=True),
        Binding("escape", "leave", "Back", priority=True),
    ]
    DEFAULT_CSS = """
    CommentScreen { align: center middle; }
    CommentScreen > Vertical { width: 80%; max-width: 90; height: auto; border: round $border; padding: 0 1;
        background: $surface; }
    CommentScreen .line { height: 1; text-wrap: nowrap; text-overflow: ellipsis; color: $text-muted;
        background: $boost; }
    CommentScreen TextArea, CommentScreen TextArea:focus { height: 6; border: none; }
    """

    def __init__(self, title: str, line: str) -> None:
        super().__init__()
        self._title_words = title
        self._line = line

    def compose(self) -> ComposeResult:
        """Yield what it is about, and the text."""
        with Vertical():
            keys = ("   ctrl+s: send   esc: back", "dim")
            yield Static(Content.assemble((self._title_words, "bold"), keys), markup=False)
            yield Static(Content(code_line(self._line[:MOST_CHARACTERS])), classes="line", markup=False)
            yield TextArea(id="comment", tab_behavior="focus")

    def action_send(self) -> None:
        """End with what is written."""
        self.dismiss(self.query_one("#comment", TextArea).text.strip() or None)

    def action_leave(self) -> None:
        """Say nothing."""
        self.dismiss(None)
