"""NoteLine: what bullpen tells a person, such as a refusal, where it covers nothing."""

from textual.content import Content
from textual.notifications import Notification
from textual.widgets import Static

from bullpen.tui.text import shown


class NoteLine(Static):
    """A line that is there as long as a person needs to read it; a long sentence takes several."""

    DEFAULT_CSS = """
    NoteLine { display: none; height: auto; max-height: 6; padding: 0 2; color: $text-muted; }
    NoteLine.warning { color: $text-warning; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show(self, notes: list[Notification]) -> None:
        """Show the last one, or nothing."""
        self.display = bool(notes)
        self.screen.set_class(bool(notes), "with-note")
        if notes:
            self.set_class(notes[-1].severity != "information", "warning")
            sign = "! " if notes[-1].severity != "information" else ""
            self.update(Content(f"{sign}{shown(notes[-1].message)}"))
