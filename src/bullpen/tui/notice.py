"""NoticeBar: a decision that is wanted, with the choices on keys and for the mouse."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from bullpen.tui.decisions import WORDS, Wanted
from bullpen.tui.text import beginning

MOST_CHARACTERS = 600
MOST_LINES = 4


class NoticeBar(Vertical):
    """Seen only while something is wanted."""

    DEFAULT_CSS = """
    NoticeBar { height: auto; max-height: 8; display: none; padding: 0 1; border-left: thick $warning;
        background: $warning 12%; margin: 0 1; }
    NoticeBar.failure { border-left: thick $error; background: $error 12%; }
    NoticeBar > Static { height: auto; max-height: 5; }
    NoticeBar > Horizontal { height: 1; }
    NoticeBar Button { height: 1; min-width: 6; width: auto; border: none; margin: 0 2 0 0; padding: 0 1;
        background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__(id="notice")
        self.wanted: Wanted | None = None
        self._text = Static(markup=False)
        self._choices = Horizontal()

    def compose(self) -> ComposeResult:
        """Yield the text and the place for the choices."""
        yield self._text
        yield self._choices

    async def show(self, wanted: Wanted | None) -> None:
        """Show what is wanted, or nothing."""
        if wanted == self.wanted:
            return
        self.wanted = wanted
        self.display = wanted is not None
        if wanted is None:
            return
        part = beginning(wanted.text, MOST_CHARACTERS, MOST_LINES)
        self.set_class(wanted.is_failure, "failure")
        self._text.update(Content(part.text + ("…" if part.left_out else "")))
        await self._choices.remove_children()
        for choice in wanted.choices:
            key, words = WORDS[choice]
            label = Content.assemble((f"{key} " if key else "", "bold"), words)
            await self._choices.mount(Button(label, action=f"screen.{choice}", compact=True))
