"""TextScreen: one text, whole."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from bullpen.tui.line_view import LinesView


class TextScreen(ModalScreen[None]):
    """A title, a text to scroll in, and escape to leave."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave", "Back")]
    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen > .title { dock: top; height: auto; padding: 0 1; background: $panel; }
    TextScreen > LinesView { width: 100%; }
    """

    def __init__(self, title: Content, text: str) -> None:
        super().__init__()
        self._heading = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield the title and the text."""
        yield Static(Content.assemble(self._heading, ("   esc: back", "dim")), classes="title", markup=False)
        yield LinesView(self._text)

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)
