"""DifferenceScreen: what an agent was given in one turn and not in another."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from bullpen.tui.line_view import LinesView
from bullpen.tui.text import one_line
from bullpen.view.difference import Difference
from bullpen.view.explanation import Explanation, SeenMessage
from bullpen.view.words import counted

MOST_MESSAGES = 5
"""Of those that only one side has seen, named in the report."""


class DifferenceScreen(ModalScreen[None]):
    """The report above, the lines that are different below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,d", "leave", "Back")]
    DEFAULT_CSS = """
    DifferenceScreen > .report { dock: top; height: auto; max-height: 60%; padding: 1 2; background: $panel; }
    DifferenceScreen > LinesView { width: 100%; padding: 1 2; }
    """

    def __init__(self, difference: Difference) -> None:
        super().__init__()
        self._difference = difference

    def compose(self) -> ComposeResult:
        """Yield the report and the lines."""
        yield Static(Content("\n").join(_report(self._difference)), classes="report", markup=False)
        yield LinesView("\n".join(_diffs(self._difference)) or "Both were given the same text.")

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


def _report(compared: Difference) -> Iterator[Content]:
    left, right = compared.left, compared.right
    title = f"{_name(right)} of {one_line(right.member, 40)}, compared with {_name(left).lower()}"
    yield Content.assemble((title, "bold"), ("   esc: back", "dim"))
    yield Content(f"{counted(compared.in_both, 'message')} in both")
    yield from _messages(f"only in {_name(left).lower()}", compared.only_left)
    yield from _messages(f"only in {_name(right).lower()}", compared.only_right)
    for section in compared.sections:
        yield Content(f"{section.section.replace('_', ' ')}: {section.left_bytes:,} → {section.right_bytes:,} bytes")


def _messages(where: str, messages: tuple[SeenMessage, ...]) -> Iterator[Content]:
    if messages:
        more = f", and {len(messages) - MOST_MESSAGES:,} more" if len(messages) > MOST_MESSAGES else ""
        numbers = ", ".join(_number(seen) for seen in messages[:MOST_MESSAGES])
        yield Content(f"{counted(len(messages), 'message')} {where}: {numbers}{more}")


def _number(seen: SeenMessage) -> str:
    return f"#{seen.sequence} ({one_line(seen.speaker, 20)})" if seen.sequence is not None else one_line(seen.id, 20)


def _diffs(compared: Difference) -> Iterable[str]:
    if compared.system_diff:
        yield f"===== system text =====\n{compared.system_diff}\n"
    if compared.prompt_diff:
        yield f"===== prompt =====\n{compared.prompt_diff}"


def _name(side: Explanation) -> str:
    return one_line(side.title, 40)
