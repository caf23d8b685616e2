"""Fold: a line that opens into more. What is inside is made when it is first opened."""

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.widget import Widget
from textual.widgets import Static

Inside = Callable[[], Iterable[Widget]]


class FoldTitle(Static, can_focus=True):
    """The line. Enter or a click opens and closes what is below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "turn", "Open or close a tool, a thought, or all that was done", show=False)
    ]
    ALLOW_SELECT = False

    async def action_turn(self) -> None:
        """Open or close."""
        if isinstance(self.parent, Fold):
            await self.parent.toggle()

    async def on_click(self, event: Click) -> None:
        """Open or close."""
        event.stop()
        await self.action_turn()


class Fold(Vertical):
    """A title, and what it hides until somebody wants to see it."""

    DEFAULT_CSS = """
    Fold { height: auto; }
    Fold > FoldTitle { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; pointer: pointer; }
    Fold > FoldTitle:hover { color: $foreground; }
    Fold > FoldTitle:focus { background: $primary 25%; color: $foreground; }
    Fold > .inside { height: auto; padding: 0 0 0 2; }
    """

    def __init__(self, title: Content, inside: Inside) -> None:
        super().__init__()
        self._title = FoldTitle(classes="item", markup=False)
        self._words = title
        self._inside = inside
        self._opened: Vertical | None = None

    @property
    def is_open(self) -> bool:
        """Whether what is inside can be seen."""
        return self._opened is not None

    def compose(self) -> ComposeResult:
        """Yield the line."""
        self._title.update(self._line())
        yield self._title

    def set_title(self, title: Content) -> None:
        """Say something else on the line."""
        self._words = title
        self._title.update(self._line())

    async def toggle(self) -> None:
        """Open or close."""
        if self._opened is None:
            self._opened = Vertical(*self._inside(), classes="inside")
            await self.mount(self._opened)
        else:
            opened, self._opened = self._opened, None
            await opened.remove()
        self._title.update(self._line())

    async def renew(self) -> None:
        """Make what is inside again, if somebody looks at it."""
        if self._opened is not None:
            await self.toggle()
            await self.toggle()

    def _line(self) -> Content:
        return Content.assemble("▾ " if self.is_open else "▸ ", self._words)
