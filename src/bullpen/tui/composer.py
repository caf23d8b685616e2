"""Composer: where a person writes. Enter sends; what is pasted waits for it."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import Static, TextArea

from bullpen.tui.text import one_line, shown
from bullpen.view.choices import STOP, Choice, Decision
from bullpen.view.commands import Command
from bullpen.view.completion import Option, options_for
from bullpen.view.shown_cards import TOO_EARLY, ShownCards

MOST_HISTORY = 500


class Composer(TextArea):
    """Some lines of text, with history and completion. What can follow is shown by the screen."""

    # Shown by the help; _on_key does what they say, in the order in which the keys come.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", show=False),
        Binding("shift+enter,ctrl+j,alt+enter", "new_line", "New line", show=False),
        Binding("tab", "complete", "Complete a name, a marker or a command; else to the messages", show=False),
        Binding("up", "up", "Previous line, or what you said before", show=False),
        Binding("down", "down", "Next line, or what you said after", show=False),
        Binding(
            "end",
            "cursor_line_end",
            "To the end of the line; at the end of the text, to the newest message",
            show=False,
        ),
    ]
    DEFAULT_CSS = """
    Composer { height: auto; min-height: 3; max-height: 10; border: round $border-blurred; background: $background; }
    Composer:focus { border: round $border; }
    """

    class Sent(Message):
        """A person wants to say this; `seen` is what waited for an answer when they began it, if that is known."""

        def __init__(self, text: str, seen: tuple[Decision, ...] | None = None) -> None:
            super().__init__()
            self.text = text
            self.seen = seen

    class Chosen(Message):
        """A person answers what the card asks, with its key."""

        def __init__(self, choice: Choice, card: Decision) -> None:
            super().__init__()
            self.choice = choice
            self.card = card

    class Suggested(Message):
        """Something can follow what was typed; tab takes the selected one."""

        def __init__(self, options: list[Option], selected: int) -> None:
            super().__init__()
            self.options = options
            self.selected = selected

    class Left(Message):
        """A person wants to be among the messages."""

    class Ended(Message):
        """A person wants to see the newest message."""

    def __init__(
        self, *, names: Mapping[str, str], more: Sequence[Command] = (), history: list[str] | None = None
    ) -> None:
        super().__init__(
            id="composer",
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="Say something …  @name  /command  F1 help",
        )
        self._names = names
        self._more = more
        """Commands that only this door has."""
        self._options: list[Option] = []
        self._options_at = (0, 0)
        """Where the cursor was when they were suggested."""
        self._selected = 0
        self._history = [] if history is None else history
        self._place: int | None = None
        self._draft = ""
        self.cards = ShownCards()
        self.seen: tuple[Decision, ...] = ()
        """What waited for an answer when the person began to write."""

    @property
    def completes(self) -> str:
        """What Enter completes instead of sending; empty: it sends."""
        if not self._has_options() or self._is_complete(self._options[self._selected]):
            return ""
        return self._options[self._selected].label

    def remember(self, text: str) -> None:
        """Put something at the end of the history."""
        if text and self._history[-1:] != [text]:
            self._history.append(text)
            del self._history[:-MOST_HISTORY]

    async def _on_paste(self, event: Paste) -> None:
        """Insert what was pasted, as text."""
        self._begin()
        event.text = shown(event.text.replace("\r\n", "\n").replace("\r", "\n"))

    async def _on_key(self, event: Key) -> None:
        """Do what a key says before the next key is looked at: a binding would wait for the whole screen."""
        self._begin()
        key = STOP if event.key == "escape" else event.character or ""
        choice = None if self.text else self.cards.choice(key, age=monotonic() - event.time)
        if choice is not None and self.cards.first is not None:
            if choice != TOO_EARLY:
                self._choose(choice, self.cards.first)
            event.stop()
            event.prevent_default()
            return
        match event.key:
            case "enter":
                self.action_send()
            case "shift+enter" | "ctrl+j" | "alt+enter":
                self.action_new_line()
            case "tab":
                self.action_complete()
            case "up":
                self.action_up()
            case "down":
                self.action_down()
            case "end" if self.cursor_location == self.document.end:
                self.post_message(self.Ended())
            case "escape" if self._options:
                self._suggest([])
            case _:
                return
        event.stop()
        event.prevent_default()

    def _begin(self) -> None:
        """Note what waits for an answer before the first letter: what comes later is not answered by this."""
        if not self.text:
            self.seen = self.cards.settled

    def _choose(self, choice: Choice, card: Decision) -> None:
        """Answer, or begin an answer that needs words: the next key is one of them."""
        if choice.begins and not choice.lacks_name:
            self.load_text(choice.begins)
            self.move_cursor(self.document.end)
        else:
            self.post_message(self.Chosen(choice, card))

    def on_resize(self) -> None:
        """Keep the cursor in sight: a draft that is wrapped in less room may need more lines than there are."""
        self.call_after_refresh(self.scroll_cursor_visible)

    def on_text_area_changed(self) -> None:
        """Suggest what can follow."""
        self._suggest(options_for(self._before_cursor(), self._names, self._more))

    def action_send(self) -> None:
        """Take the selected suggestion, or send."""
        if self.completes:
            self.action_complete()
        elif self.text.strip():
            # At once, so that what is typed next is not part of it. A draft from before the history is back then.
            text, draft = self.text, "" if self._place is None else self._draft
            self._place = None
            self.load_text(draft)
            self.move_cursor(self.document.end)
            self.post_message(self.Sent(text, self.seen))

    @property
    def draft(self) -> str:
        """What the person is writing, with what they were writing before they went back in the history."""
        if self._place is None:
            return self.text
        is_changed = self.text != self._history[self._place]
        return "\n".join(filter(None, [self._draft, self.text if is_changed else ""]))

    def replace_draft(self, text: str) -> None:
        """Write something else; what was there comes back with the key up."""
        self.remember(self.draft)
        self._place = None
        self.seen = self.cards.settled
        self.load_text(text)
        self.move_cursor(self.document.end)

    def take_back(self, text: str) -> None:
        """Show again what could not be sent, before what was typed since. Who has read why may mean what waits now."""
        self.seen = self.cards.settled
        self.load_text(f"{text}\n{self.text}" if self.text else text)
        self.move_cursor(self.document.end)

    def action_new_line(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Replace what was typed with the selected suggestion."""
        if not self._has_options():
            self.post_message(self.Left())
            return
        option = self._options[self._selected]
        row, column = self.cursor_location
        self.replace(option.insert, (row, column - option.replaces), (row, column))
        self._suggest(options_for(self._before_cursor(), self._names, self._more))

    def action_up(self) -> None:
        """Select the suggestion above, or move the cursor, or go back in the history."""
        if self._has_options():
            self._select_next(-1)
        elif self.cursor_at_first_line:
            self._recall(-1)
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        """Select the suggestion below, or move the cursor, or go forward in the history."""
        if self._has_options():
            self._select_next(1)
        elif self.cursor_at_last_line:
            self._recall(1)
        else:
            self.action_cursor_down()

    def _recall(self, by: int) -> None:
        place = len(self._history) if self._place is None else self._place
        if not 0 <= place + by <= len(self._history):
            return
        if self._place is None:
            self._draft = self.text
        elif self.text != self._history[self._place]:
            # It was changed: kept as one more.
            self._history.append(self.text)
        self._place = place + by
        is_draft = self._place == len(self._history)
        self.load_text(self._draft if is_draft else self._history[self._place])
        self._place = None if is_draft else self._place
        self.move_cursor(self.document.end)
        self._suggest([])

    def _select_next(self, by: int) -> None:
        self._selected = (self._selected + by) % len(self._options)
        self.post_message(self.Suggested(self._options, self._selected))

    def _suggest(self, options: list[Option]) -> None:
        if options or self._options:
            self._options, self._selected = options, 0
            self._options_at = self.cursor_location
            self.post_message(self.Suggested(options, 0))

    def _has_options(self) -> bool:
        """Return whether there are suggestions for where the cursor is now; those for another place go away."""
        if self._options and self._options_at != self.cursor_location:
            self._suggest([])
        return bool(self._options)

    def _is_complete(self, option: Option) -> bool:
        """Return whether a suggestion is what was typed already, but for a space."""
        return self._before_cursor().endswith(option.insert.rstrip()) and option.replaces == len(option.insert.rstrip())

    def _before_cursor(self) -> str:
        """Return the line before the cursor; unless it is the first, with an end of line before it."""
        row, column = self.cursor_location
        line = self.document.get_line(row)[:column]
        return f"\n{line}" if row else line


class SuggestionList(Static):
    """Some lines, one of them selected. It never has the focus: the composer keeps it."""

    DEFAULT_CSS = """
    SuggestionList { display: none; height: auto; max-height: 10; margin: 0 2; padding: 0 1; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__(id="suggestions", markup=False)

    def show(self, options: list[Option], selected: int) -> None:
        """Show suggestions, or nothing."""
        self.display = bool(options)
        self.screen.set_class(bool(options), "with-suggestions")
        width = max((len(option.label) for option in options), default=0)
        lines = [
            Content.assemble(
                (f" {one_line(option.label, 30):<{min(width, 30)}} ", "bold reverse" if place == selected else "bold"),
                (f"  {one_line(option.help, 80)}", "dim"),
            )
            for place, option in enumerate(options)
        ]
        self.update(Content("\n").join(lines))
