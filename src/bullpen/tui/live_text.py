"""LiveText: a reply while it is written. Its beginning stays, its end is always there; what is between is folded."""

from typing import TYPE_CHECKING

from bullpen.tui.long_text import fits, pieces_of, taken, within
from bullpen.tui.middle_fold import MiddleFold
from bullpen.tui.text import MOST_CHARACTERS, MOST_LINES, shown

if TYPE_CHECKING:
    from textual.widget import Widget

    from bullpen.tui.markdown import SafeMarkdown


class LiveText:
    """Writes a growing text into a widget, below what is there."""

    def __init__(self, place: "Widget") -> None:
        self._place = place
        self._shown = 0
        """How many characters of the text are on the screen, or folded."""
        self._middle = 0
        """Where the beginning ends that stays; 0 while all of the text is on the screen."""
        self._end = 0
        """Where the end begins."""
        self._fence = ""
        """The line that began the code in which that is; nothing outside of code."""
        self._part: SafeMarkdown | None = None
        self._ends: list[SafeMarkdown] = []
        """The parts of the end, between steps."""
        self._fold: MiddleFold | None = None

    def end_part(self) -> None:
        """Write what comes next into a new part, below what has been mounted meanwhile."""
        self._part = None

    async def show(self, text: str) -> None:
        """Show the text as far as it has come."""
        if len(text) <= self._shown:
            return
        fresh = self._shown
        self._shown = len(text)
        if not self._middle:
            pieces = list(pieces_of(text))
            if fits(pieces):
                await self._append(text[fresh:])
                return
            stays = taken(pieces, MOST_CHARACTERS, MOST_LINES)
            self._middle = self._end = max(fresh, pieces[stays - 1].end)
            self._fence = pieces[min(stays, len(pieces) - 1)].fence
            await self._append(text[fresh : self._middle])
            self._part, fresh = None, self._middle
        await self._show_end(text, fresh)

    async def _show_end(self, text: str, fresh: int) -> None:
        pieces = list(pieces_of(text, start=self._end, fence=self._fence))
        if not fits(pieces):
            stays = taken(pieces[::-1], MOST_CHARACTERS // 2, MOST_LINES // 2)
            self._end, self._fence = pieces[-stays].start, pieces[-stays].fence
            await self._fold_middle(text[self._middle : self._end])
            fresh = self._end
        await self._append(text[fresh:], is_end=True)

    async def _fold_middle(self, text: str) -> None:
        for part in self._ends:
            await part.remove()
        self._ends, self._part = [], None
        if self._fold is None:
            self._fold = MiddleFold(text)
            await self._place.mount(self._fold)
        else:
            await self._fold.show(text)

    async def _append(self, text: str, *, is_end: bool = False) -> None:
        if self._part is None:
            from bullpen.tui.markdown import SafeMarkdown

            self._part = SafeMarkdown()
            await self._place.mount(self._part)
            if is_end:
                text = within(self._fence if not self._ends else "", text)
                self._ends.append(self._part)
        # The turn may have ended meanwhile, and with it this view.
        if self._part.is_attached and text:
            await self._part.append(shown(text))
