"""MiddleFold: what is folded of a long text, on one line that opens into all of it."""

from collections.abc import Iterable

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from bullpen.tui.fold import Fold
from bullpen.tui.long_text import effort
from bullpen.tui.text import MOST_LINES, shown

MOST_PLAIN = 100_000
"""Characters that are laid out as they were written; a screen would not answer for seconds with a million."""


class MiddleFold(Fold):
    """The middle of a text. Markdown if it is short enough to be laid out, else as it was written."""

    DEFAULT_CSS = "MiddleFold { margin: 0 0 1 0; } MiddleFold > FoldTitle { color: $text-accent; }"

    def __init__(self, text: str) -> None:
        super().__init__(_title(text), self._all)
        self._text = text

    async def show(self, text: str) -> None:
        """Fold more."""
        self._text = text
        self.set_title(_title(text))
        await self.renew()

    def _all(self) -> Iterable[Widget]:
        if effort(self._text) < MOST_LINES:
            from bullpen.tui.markdown import SafeMarkdown

            yield SafeMarkdown(shown(self._text))
            return
        more = len(self._text) - MOST_PLAIN
        yield Static(Content(shown(self._text[:MOST_PLAIN])), markup=False)
        if more > 0:
            yield Static(Content(f"… {more:,} more characters: enter on the message shows all of it"), markup=False)


def _title(text: str) -> Content:
    lines = text.count("\n") + 1
    return Content(f"… {lines:,} line{'s' if lines != 1 else ''} in the middle, {len(text):,} characters")
