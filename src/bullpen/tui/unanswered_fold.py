"""UnansweredFold: a turn that ended without a reply, as a line that opens into what it had said and done."""

from collections.abc import Iterable

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from bullpen.tui.fold import Fold
from bullpen.tui.long_text import folded
from bullpen.tui.middle_fold import MiddleFold
from bullpen.tui.text import one_line, shown
from bullpen.tui.theme import sign_of
from bullpen.view.unanswered import UnansweredTurn

MOST_LINES = 60


class UnansweredFold(Fold):
    """One turn."""

    DEFAULT_CSS = """
    UnansweredFold .reason { color: $text-warning; }
    UnansweredFold .done { color: $text-muted; }
    """

    def __init__(self, turn: UnansweredTurn, *, name: str, color: str) -> None:
        title = Content.assemble(
            sign_of(turn.activity),
            (f"{one_line(name, 40)} ", f"bold {color}"),
            # The line is muted already.
            f"{one_line(turn.heading, 80)} · {turn.summary}",
        )
        super().__init__(title, lambda: _inside(turn))


def _inside(turn: UnansweredTurn) -> Iterable[Widget]:
    yield Static(Content(shown(turn.reason)), classes="reason", markup=False)
    for line in turn.done[-MOST_LINES:]:
        yield Static(Content(one_line(line, 200)), classes="done", markup=False)
    if turn.said:
        from bullpen.tui.markdown import SafeMarkdown

        said = folded([turn.said])
        yield from (SafeMarkdown(text) for _, text in said.before)
        if said.middle:
            yield MiddleFold(said.middle)
        yield from (SafeMarkdown(text) for _, text in said.after)
