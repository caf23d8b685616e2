"""SuggestionList: what can follow what a person is typing, just above the composer."""

from textual.content import Content
from textual.widgets import Static

from bullpen.tui.text import one_line
from bullpen.view.completion import Option


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
        width = max((len(option.label) for option in options), default=0)
        lines = [
            Content.assemble(
                (f" {one_line(option.label, 30):<{min(width, 30)}} ", "bold reverse" if place == selected else "bold"),
                (f"  {one_line(option.help, 80)}", "dim"),
            )
            for place, option in enumerate(options)
        ]
        self.update(Content("\n").join(lines))
