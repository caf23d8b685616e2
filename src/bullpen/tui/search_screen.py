"""SearchScreen: finding what was said, and going there."""

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.text.numbers import day_or_clock
from bullpen.tui.text import one_line
from bullpen.view.listing import Hit, search_in

MOST_FOUND = 50


class SearchScreen(ModalScreen[int | None]):
    """A line to type in, and what was found so far. It ends with the place of a message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("down", "down", "To what was found", show=False),
    ]
    DEFAULT_CSS = """
    SearchScreen { align: center top; }
    SearchScreen > Vertical { width: 90%; max-width: 110; height: auto; max-height: 90%; margin: 2 0; padding: 0 1;
        border: round $border; background: $surface; }
    SearchScreen Input, SearchScreen Input:focus { border: none; height: 1; background: $panel; margin: 0 0 1 0; }
    SearchScreen OptionList > .option-list--option-disabled { color: $text-muted; }
    SearchScreen OptionList, SearchScreen OptionList:focus { height: auto; max-height: 80%; border: none;
        background: $surface; }
    """

    def __init__(self, conversation: Conversation, words: str = "") -> None:
        super().__init__()
        self._conversation = conversation
        self._words = words
        # Kept: what is found may come after this screen was left, when it has no parts any more.
        self._found = OptionList(id="found", markup=False)

    def compose(self) -> ComposeResult:
        """Yield the line and the list."""
        with Vertical():
            yield Input(self._words, placeholder="What was said …", id="words")
            yield self._found

    def on_mount(self) -> None:
        """Search for the words that are there already."""
        self.search(self._words)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search again."""
        self.search(event.value)

    def on_input_submitted(self) -> None:
        """Go to the first one, or into the list."""
        found = self._found
        if found.option_count and found.get_option_at_index(0).id is not None:
            self.dismiss(int(found.get_option_at_index(0).id or 0))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go there."""
        self.dismiss(int(event.option_id) if event.option_id else None)

    def action_down(self) -> None:
        """Go into the list."""
        self._found.focus()

    def action_leave(self) -> None:
        """Go back to where the person was."""
        self.dismiss(None)

    @work(exclusive=True)
    async def search(self, words: str) -> None:
        """Show the messages that have all of these words."""
        try:
            found = await self._conversation.read(search_in, words, limit=MOST_FOUND)
        except BullpenError as error:
            found = []
            self.notify(one_line(str(error), 300), severity="error", markup=False)
        nothing = [Option("nothing found", disabled=True)] if words.strip() else []
        self._found.set_options([_option(one) for one in found] or nothing)
        if found:
            self._found.highlighted = 0


def _option(found: Hit) -> Option:
    words = Content.assemble(
        (f"#{found.sequence} ", "dim"),
        (one_line(found.speaker, 30), "bold"),
        (f" {day_or_clock(found.timestamp)}  ", "dim"),
        one_line(found.snippet, 120),
    )
    return Option(words, id=str(found.sequence))
