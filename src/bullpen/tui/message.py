"""MessageView: one message: who said it, to whom, when, what; and what the agent did before it answered."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from bullpen.messages import ConversationMessage
from bullpen.store.base import StoredMessage
from bullpen.tui.markdown import SafeMarkdown
from bullpen.tui.step_folds import LoadWork, RecordedFold, WorkFold
from bullpen.tui.text import beginning, clock, one_line, shown
from bullpen.tui.work import Work


class MessageView(Vertical, can_focus=True):
    """One message. It has the focus when a person moves to it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "whole", "The whole text of a message", show=False)]
    DEFAULT_CSS = """
    MessageView { height: auto; padding: 0 1; margin: 0 0 1 0; border-left: outer $border-blurred; }
    MessageView:focus { background: $primary 8%; }
    MessageView > .header { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    MessageView > .more { color: $text-accent; }
    MessageView > .note { color: $text-warning; }
    MessageView > .why { color: $text-muted; }
    """

    class Opened(Message):
        """A person wants to read all of it."""

        def __init__(self, message: ConversationMessage) -> None:
            super().__init__()
            self.message = message

    def __init__(
        self,
        stored: StoredMessage,
        *,
        color: str,
        names: dict[str, str],
        work: Work | None = None,
        load_work: LoadWork | None = None,
        why: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(classes="item")
        self.stored = stored
        self._color = color
        self._names = names
        self._work = work
        self._load_work = load_work
        self._why = why
        self._notes = notes
        self.styles.border_left = ("outer", color)

    @property
    def sequence(self) -> int:
        """Its place in the conversation."""
        return self.stored.sequence

    def compose(self) -> ComposeResult:
        """Yield what was said and what is known about it."""
        part = beginning(self.stored.message.content)
        yield Static(self._header(), classes="header", markup=False)
        if self._work is not None and self._work.steps:
            yield WorkFold(self._work)
        elif self._work is None and self._load_work is not None:
            yield RecordedFold(self._load_work)
        yield SafeMarkdown(part.text)
        if part.left_out:
            more = f"… {part.left_out:,} characters more: enter shows all of it"
            yield Static(Content(more), classes="more", markup=False)
        for note in self._notes:
            yield Static(Content(f"! {shown(note)}"), classes="note", markup=False)

    def action_whole(self) -> None:
        """Show all of it, exactly as it was said."""
        self.post_message(self.Opened(self.stored.message))

    def _header(self) -> Content:
        message = self.stored.message
        addressees = message.routing.resolved_addressees if message.routing else ()
        to = ", ".join(self._names.get(name, name) for name in addressees) or "everyone"
        title = f" {one_line(message.speaker.role_title, 30)}" if message.speaker.role_title else ""
        why = f"  ({one_line(self._why, 60)})" if self._why else ""
        return Content.assemble(
            (one_line(message.speaker.role_name, 40), f"bold {self._color}"),
            (title, "dim"),
            (" → ", "dim"),
            one_line(to, 60),
            (f"  {clock(message.timestamp)}  #{self.stored.sequence}{why}", "dim"),
        )
