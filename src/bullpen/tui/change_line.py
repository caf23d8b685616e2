"""ChangedLine: what a turn changed, below its message; or what somebody changed or took back after it."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from bullpen.tui.text import one_line
from bullpen.view.change_reading import ChangeLine


class ChangedLine(Static, can_focus=True):
    """One line. Enter or a click opens the diff."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "Show what was changed", show=False)]
    ALLOW_SELECT = False
    DEFAULT_CSS = """
    ChangedLine { height: 1; color: $text-accent; text-wrap: nowrap; text-overflow: ellipsis; pointer: pointer; }
    ChangedLine:hover { color: $foreground; }
    ChangedLine:focus { background: $primary 25%; color: $foreground; }
    """

    class Opened(Message):
        """A person wants to see it line by line."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, line: ChangeLine) -> None:
        of_turn = line.kind == "turn"
        # The message above says whose turn it is; a sentence about anything else has its note.
        note = f"  {one_line(line.note, 200)}" if of_turn and line.note else ""
        said = one_line(line.short if of_turn else line.words, 300)
        key = ("  ctrl+r" if of_turn else "", "dim")
        super().__init__(Content.assemble("± ", said, key, (note, "$text-warning")), classes="item", markup=False)
        self.line = line

    def action_open(self) -> None:
        """Show it line by line."""
        self.post_message(self.Opened(self.line.number))

    def on_click(self, event: Click) -> None:
        """Show it line by line."""
        event.stop()
        self.action_open()
