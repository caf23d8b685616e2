"""NoteLine: what bullpen tells a person, such as a refusal, where it covers nothing."""

from textual.content import Content
from textual.notifications import Notification
from textual.widgets import Static

from bullpen.tui.text import cut_to_lines

MOST_LINES, MOST_LINES_WHERE_SHORT = 6, 2
AROUND = 4
"""Columns on both sides."""


class NoteLine(Static):
    """A line that is there as long as a person needs to read it; a long sentence takes several."""

    DEFAULT_CSS = """
    NoteLine { display: none; height: auto; max-height: 6; padding: 0 2; color: $text-muted; }
    NoteLine.warning { color: $text-warning; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._note = ""

    def show(self, notes: list[Notification]) -> None:
        """Show the last one, or nothing."""
        self.display = bool(notes)
        self.screen.set_class(bool(notes), "with-note")
        if notes:
            self.set_class(notes[-1].severity != "information", "warning")
            sign = "! " if notes[-1].severity != "information" else ""
            self._note = f"{sign}{notes[-1].message}"
            self._show_note()

    def on_resize(self) -> None:
        """Say as much as there is room for now."""
        self._show_note()

    def _show_note(self) -> None:
        width = self.content_size.width or self.app.size.width - AROUND
        most = MOST_LINES_WHERE_SHORT if self.screen.has_class("-short") else MOST_LINES
        self.update(Content(cut_to_lines(self._note, width, most)))
