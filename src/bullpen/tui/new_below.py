"""NewBelow: a line that says how many messages have come while a person was reading further up."""

from textual.content import Content
from textual.widgets import Static


class NewBelow(Static):
    """Only visible while there are any; a click leads there."""

    DEFAULT_CSS = """
    NewBelow { display: none; height: 1; padding: 0 2; color: $text-accent; background: $boost; text-align: center;
        pointer: pointer; }
    """
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__(id="new-below", markup=False)

    def show(self, count: int) -> None:
        """Say how many there are, or nothing."""
        self.display = bool(count)
        self.update(Content.assemble((f"↓ {count:,} new", "bold"), ("  end or a click shows them", "dim")))

    async def on_click(self) -> None:
        """Go there."""
        await self.run_action("screen.newest")
