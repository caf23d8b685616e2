"""MemberScreen: choosing a member."""

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from bullpen.tui.text import one_line


class MemberScreen(ModalScreen[str | None]):
    """A list of names, each on a number. It ends with one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        *(Binding(str(number), f"take({number})", show=False) for number in range(1, 10)),
    ]
    DEFAULT_CSS = """
    MemberScreen { align: center middle; }
    MemberScreen > Vertical { width: 50; max-width: 90%; height: auto; border: round $border; padding: 0 1;
        background: $surface; }
    MemberScreen OptionList, MemberScreen OptionList:focus { height: auto; max-height: 16; border: none;
        background: $surface; }
    """

    def __init__(self, question: str, members: Mapping[str, str]) -> None:
        super().__init__()
        self._question = question
        self._members = members

    def compose(self) -> ComposeResult:
        """Yield the question and the names."""
        with Vertical():
            yield Static(Content.styled(one_line(self._question, 100), "bold"), markup=False)
            yield OptionList(*self._options(), markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """End with this one."""
        self.action_take(event.option_index + 1)

    def action_take(self, number: int) -> None:
        """End with the name at a place."""
        names = list(self._members)
        if number <= len(names):
            self.dismiss(names[number - 1])

    def action_leave(self) -> None:
        """Choose nobody."""
        self.dismiss(None)

    def _options(self) -> list[Option]:
        return [
            Option(
                Content.assemble(
                    (f"{number} ", "dim"), (one_line(name, 30), "bold"), (f"  {one_line(words, 40)}", "dim")
                )
            )
            for number, (name, words) in enumerate(self._members.items(), start=1)
        ]
