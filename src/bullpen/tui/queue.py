"""QueuePanel: the turns that wait, the next one first. They can be moved and dropped."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from bullpen.conversation.conversation import Conversation
from bullpen.tui.text import one_line


class QueuePanel(OptionList):
    """A list. What it asks for is done by the screen, which knows what to say when it does not work."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+up,K", "move(-1)", "Let the turn begin earlier", show=False),
        Binding("shift+down,J", "move(1)", "Let the turn begin later", show=False),
        Binding("d,delete", "drop", "Drop the turn", show=False),
        Binding("D", "drop_all", "Drop every turn that waits", show=False),
    ]
    DEFAULT_CSS = """
    QueuePanel { height: auto; max-height: 50%; border: none; padding: 0 1; background: transparent; }
    QueuePanel:focus { border: none; }
    QueuePanel > .option-list--option-highlighted { background: transparent; text-style: none; }
    QueuePanel:focus > .option-list--option-highlighted { background: $primary 30%; }
    """

    class Reordered(Message):
        """A person wants another order."""

        def __init__(self, turn_ids: list[str]) -> None:
            super().__init__()
            self.turn_ids = turn_ids

    class Dropped(Message):
        """A person wants turns gone; none means all."""

        def __init__(self, turn_ids: list[str]) -> None:
            super().__init__()
            self.turn_ids = turn_ids

    def __init__(self, conversation: Conversation, *, colors: dict[str, str]) -> None:
        super().__init__(id="queue", markup=False)
        self._conversation = conversation
        self._colors = colors
        self.can_focus = False

    def show(self) -> None:
        """Show the queue as it is, with the mark where it was."""
        marked = self.highlighted_option.id if self.highlighted_option else None
        waiting = self._conversation.waiting
        held = {turn.id for turn in self._conversation.held}
        options = [
            Option(
                Content.assemble(
                    (f"{place}. ", "dim"),
                    (one_line(turn.member, 18), self._colors.get(turn.member, "")),
                    (" held" if turn.id in held else " first" if turn.intent == 0 else "", "dim"),
                ),
                id=turn.id,
            )
            for place, turn in enumerate(waiting, start=1)
        ]
        self.set_options(options or [Option(Content.styled("nobody waits", "dim"), disabled=True)])
        self.can_focus = bool(waiting)
        ids = [turn.id for turn in waiting]
        if ids:
            self.highlighted = ids.index(marked) if marked in ids else 0

    def action_move(self, by: int) -> None:
        """Let the marked turn begin earlier or later."""
        ids = [turn.id for turn in self._conversation.waiting]
        place = self.highlighted
        if place is not None and 0 <= place + by < len(ids):
            ids[place], ids[place + by] = ids[place + by], ids[place]
            self.post_message(self.Reordered(ids))

    def action_drop(self) -> None:
        """Drop the marked turn."""
        if self.highlighted_option is not None and self.highlighted_option.id is not None:
            self.post_message(self.Dropped([self.highlighted_option.id]))

    def action_drop_all(self) -> None:
        """Drop every turn that waits."""
        if self._conversation.waiting:
            self.post_message(self.Dropped([]))
