"""QueuePanel: the waiting turns, the next one first, and what each waits for. They can be moved and dropped."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from bullpen.tui.text import one_line
from bullpen.tui.theme import color_of
from bullpen.view.state import ConversationView, QueuedTurn

LONGEST_REASON = 120


class QueuePanel(OptionList):
    """A list. What a person asks for here is done by the screen, which also says why something is not possible."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+up", "move(-1)", "Let the turn begin earlier", show=False),
        Binding("shift+down", "move(1)", "Let the turn begin later", show=False),
        Binding("delete", "drop", "Drop the turn; asks first", show=False),
        Binding("ctrl+delete", "drop_all", "Drop every waiting turn; asks first", show=False),
    ]
    DEFAULT_CSS = """
    QueuePanel { height: auto; max-height: 50%; border: none; padding: 0 1; background: transparent; }
    QueuePanel:focus { border: none; }
    QueuePanel > .option-list--option-disabled { color: $text-muted; }
    QueuePanel > .option-list--option-highlighted { background: transparent; text-style: none; }
    QueuePanel:focus > .option-list--option-highlighted { background: $primary 30%; }
    """

    class Reordered(Message):
        """A person wants another order."""

        def __init__(self, turn_ids: list[str]) -> None:
            super().__init__()
            self.turn_ids = turn_ids

    class Dropped(Message):
        """A person has pressed the key that drops turns; none means all."""

        def __init__(self, turn_ids: list[str], key: str) -> None:
            super().__init__()
            self.turn_ids = turn_ids
            self.key = key

    def __init__(self) -> None:
        super().__init__(id="queue", markup=False)
        self._queue: tuple[QueuedTurn, ...] | None = None
        self._why: list[str] = []
        self.can_focus = False

    def show(self, view: ConversationView) -> None:
        """Show the queue, with the same turn selected as before."""
        why = [turn.why for turn in view.queue]
        if view.queue == self._queue and why == self._why:
            return
        self._why = why
        selected = self.highlighted_option.id if self.highlighted_option else None
        self._queue = view.queue
        options = [_option(place, turn, view.colors) for place, turn in enumerate(view.queue, start=1)]
        self.set_options(options or [Option(Content("no waiting turns"), disabled=True)])
        self.can_focus = bool(options)
        ids = self._turn_ids
        if ids:
            self.highlighted = ids.index(selected) if selected in ids else 0

    def action_move(self, by: int) -> None:
        """Let the selected turn begin earlier or later."""
        ids = self._turn_ids
        place = self.highlighted
        if place is not None and 0 <= place + by < len(ids):
            ids[place], ids[place + by] = ids[place + by], ids[place]
            self.post_message(self.Reordered(ids))

    def action_drop(self) -> None:
        """Drop the selected turn."""
        if self.highlighted_option is not None and self.highlighted_option.id is not None:
            self.post_message(self.Dropped([self.highlighted_option.id], "delete"))

    def action_drop_all(self) -> None:
        """Drop every waiting turn."""
        if self._queue:
            self.post_message(self.Dropped([], "ctrl+delete"))

    @property
    def _turn_ids(self) -> list[str]:
        return [turn.turn for turn in self._queue or ()]


def _option(place: int, turn: QueuedTurn, colors: dict[str, str]) -> Option:
    note = " on hold" if turn.held else " at the same time" if turn.at_once else ""
    why = f"\n{one_line(turn.why, LONGEST_REASON)}" if turn.why else ""
    words = Content.assemble(
        (f"{place}. ", "dim"), (one_line(turn.member, 18), color_of(colors, turn.member)), (f"{note}{why}", "dim")
    )
    return Option(words, id=turn.turn)
