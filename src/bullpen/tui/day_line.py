"""DayLine: the day on which the messages below it were said."""

from collections.abc import Iterable

from textual.content import Content
from textual.widgets import Static

from bullpen.clock import milliseconds
from bullpen.text.numbers import day
from bullpen.tui.message import MessageView


class DayLine(Static):
    """A line before the first message of a day."""

    DEFAULT_CSS = "DayLine { height: 1; margin: 0 0 1 0; color: $text-muted; }"

    def __init__(self, first: MessageView, words: str) -> None:
        super().__init__(Content(f"── {words} ──"), markup=False)
        self.first = first
        """The message that it is before."""


def first_of_days(views: Iterable[MessageView]) -> dict[MessageView, str]:
    """Return the messages that were said on another day than the one before, each with its day.

    The first one needs no line if it was said today.
    """
    before = day(milliseconds())
    first: dict[MessageView, str] = {}
    for view in views:
        this = day(view.message.timestamp)
        if this and this != before:
            first[view] = this
        before = this or before
    return first
