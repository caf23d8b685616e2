"""TaskScreen: reading and changing what the team works on."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from bullpen.tui.text import shown


class TaskScreen(ModalScreen[str | None]):
    """A text to edit. It ends with the new task, empty for none, or with None if nothing is to change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("escape", "leave", "Back", priority=True),
    ]
    DEFAULT_CSS = """
    TaskScreen { align: center middle; }
    TaskScreen > Vertical { width: 80%; max-width: 90; height: auto; border: round $border; padding: 0 1;
        background: $surface; }
    TaskScreen TextArea, TaskScreen TextArea:focus { height: 10; border: none; }
    """

    def __init__(self, task: str) -> None:
        super().__init__()
        self._old = shown(task)

    def compose(self) -> ComposeResult:
        """Yield the text."""
        with Vertical():
            yield Static(Content.assemble(("The team's task", "bold"), ("   ctrl+s: save   esc: back", "dim")))
            yield TextArea(self._old, id="task", tab_behavior="focus")

    def action_save(self) -> None:
        """End with what is written."""
        self.dismiss(self.query_one("#task", TextArea).text.strip())

    def action_leave(self) -> None:
        """Change nothing."""
        self.dismiss(None)
