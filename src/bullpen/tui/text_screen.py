"""TextScreen: one text, whole."""

from collections.abc import Iterator
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from bullpen.tui.text import shown


class LinesView(ScrollView, can_focus=True):
    """Plain text, wrapped at the width of the view, exactly as it is but for what a terminal would obey."""

    DEFAULT_CSS = """
    LinesView { padding: 0 1; height: 1fr; background: $background; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, text: str, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._paragraphs = shown(text).split("\n")
        self._lines: list[str] = []
        self._width = 0

    def on_resize(self, event: Resize) -> None:
        """Wrap the text for the new width."""
        width = max(1, event.size.width - self.styles.padding.width - 1)
        if width != self._width:
            self._width = width
            self._lines = [line for paragraph in self._paragraphs for line in wrapped(paragraph, width)]
            self.virtual_size = Size(width, len(self._lines))

    def render_line(self, y: int) -> Strip:
        """Return one line of the view."""
        place = y + round(self.scroll_offset.y)
        text = self._lines[place] if place < len(self._lines) else ""
        return Strip([Segment(text, self.rich_style)]).adjust_cell_length(self.size.width, self.rich_style)


def wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line in pieces that fit, cut at spaces where there are any."""
    while len(line) > width or (not line.isascii() and cell_len(line) > width):
        piece = line[:width]
        while not piece.isascii() and cell_len(piece) > width and len(piece) > 1:
            piece = (
                piece[: max(1, len(piece) * width // cell_len(piece))] if cell_len(piece) > 2 * width else piece[:-1]
            )
        space = piece.rfind(" ")
        if space > width // 2:
            piece = piece[: space + 1]
        yield piece.rstrip(" ") if len(piece) < len(line) else piece
        line = line[len(piece) :]
    yield line


class ReadingScreen(ModalScreen[None]):
    """Something to read above the conversation. Escape leaves it, and so does typing, which writes as everywhere."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back")]

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


class TextScreen(ReadingScreen):
    """A title and a text to scroll in."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "leave", "Back")]
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
