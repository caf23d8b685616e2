"""CheckFold: what a check said after a turn, as a line that opens into what it wrote."""

from collections.abc import Iterable

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from bullpen.tui.fold import Fold
from bullpen.tui.text import one_line, shown
from bullpen.tui.theme import LIGHTS
from bullpen.view.checks import CheckLine

MOST_LINES = 60


class CheckFold(Fold):
    """One run of one check."""

    DEFAULT_CSS = """
    CheckFold .output { color: $text-muted; background: $boost; padding: 0 1; }
    """

    def __init__(self, line: CheckLine) -> None:
        super().__init__(_title(line), self._output)
        self.line = line

    async def show(self, line: CheckLine) -> None:
        """Show how it stands now."""
        self.line = line
        self.set_title(_title(line))
        await self.renew()

    def _output(self) -> Iterable[Widget]:
        lines = shown(self.line.output).split("\n")
        if len(lines) > MOST_LINES:
            left_out = len(lines) - MOST_LINES
            lines = [
                lines[0],
                f"… {left_out:,} lines are left out here: /checks {self.line.turn} shows them",
                *lines[1 - MOST_LINES :],
            ]
        yield Static(Content("\n".join(lines)), classes="output", markup=False)


def _title(line: CheckLine) -> Content:
    style = LIGHTS[line.light]
    return Content.assemble((f"{line.sign} ", style), (one_line(line.words, 200), style))
