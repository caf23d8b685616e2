"""ConversationsScreen: the other conversations of this folder, to open one of them."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from bullpen.text.numbers import counted, day_or_clock
from bullpen.tui.text import one_line
from bullpen.tui.theme import LIGHTS, sign_of
from bullpen.view.activity import ACTIVITIES
from bullpen.view.listing import ConversationSummary

NEW = ""
"""What the screen ends with for a new conversation."""


class ConversationsScreen(ModalScreen[str | None]):
    """A line to type in, and the conversations that fit. It ends with the id of one, NEW, or None for nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("down", "move(1)", "Down", show=False),
        Binding("up", "move(-1)", "Up", show=False),
    ]
    DEFAULT_CSS = """
    ConversationsScreen { align: center top; }
    ConversationsScreen > Vertical { width: 90%; max-width: 110; height: auto; max-height: 90%; margin: 2 0;
        padding: 0 1; border: round $border; background: $surface; }
    ConversationsScreen Input, ConversationsScreen Input:focus { border: none; height: 1; background: $panel;
        margin: 1 0; }
    ConversationsScreen OptionList, ConversationsScreen OptionList:focus { height: auto; max-height: 80%; border: none;
        background: $surface; }
    """

    def __init__(self, conversations: list[ConversationSummary], current: str, words: str = "") -> None:
        super().__init__()
        self._conversations = conversations
        self._current = current
        self._words = words
        self._listed = OptionList(id="conversations", markup=False)

    def compose(self) -> ComposeResult:
        """Yield the line and the list."""
        with Vertical():
            yield Static(
                Content.assemble(("Conversations of this folder", "bold"), ("   enter: open   esc: back", "dim")),
                markup=False,
            )
            yield Input(self._words, placeholder="Filter …")
            yield self._listed

    def on_mount(self) -> None:
        """Show the list."""
        self._show(self._words)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show those that fit."""
        self._show(event.value)

    def on_input_submitted(self) -> None:
        """Open the selected one."""
        option = self._listed.highlighted_option
        if option is not None:
            self.dismiss(option.id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open it."""
        self.dismiss(event.option_id)

    def action_move(self, by: int) -> None:
        """Select the one above or below; the line keeps the focus."""
        (self._listed.action_cursor_down if by > 0 else self._listed.action_cursor_up)()

    def action_leave(self) -> None:
        """Open nothing."""
        self.dismiss(None)

    def _show(self, words: str) -> None:
        wanted = words.casefold().split()
        fitting = [one for one in self._conversations if all(word in _searched(one) for word in wanted)]
        new = Option(Content("+ a new conversation"), id=NEW)
        self._listed.set_options([*(self._option(one) for one in fitting), new])
        # The one that is open is chosen only if no other fits.
        self._listed.highlighted = next((at for at, one in enumerate(fitting) if one.id != self._current), 0)

    def _option(self, one: ConversationSummary) -> Option:
        facts = [one.id, day_or_clock(one.last_at), counted(one.messages, "message")]
        facts += ["here"] if one.id == self._current else []
        now = ACTIVITIES[one.activity]
        words = Content.assemble(
            sign_of(now),
            (one_line(one.title, 60), "bold"),
            (f"  {now.word}", LIGHTS[now.light]),
            (f" · {' · '.join(facts)}", "dim"),
        )
        return Option(words, id=one.id)


def _searched(one: ConversationSummary) -> str:
    return f"{one.title} {one.first_words} {one.id} {one.team}".casefold()
