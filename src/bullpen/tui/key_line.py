"""KeyLine: the most important keys, in the last line of a screen."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.widgets import Footer

# It has no public name.
from textual.widgets._footer import FooterKey


class KeyLine(Footer):
    """A footer that is made again only if it says something else; Textual's is made with every move of the focus."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self._shown: list[dict[str, Any]] = []

    def compose(self) -> ComposeResult:
        """Yield the keys."""
        self._shown = self._keys() if self._bindings_ready else []
        # Compact from the beginning: each would get its styles twice.
        yield from (FooterKey(**key, classes="-compact") for key in self._shown)

    async def recompose(self) -> None:
        """Show what the keys do now."""
        if self.is_attached and self._keys() != self._shown:
            await super().recompose()

    async def on_resize(self) -> None:
        """Show as many as there is room for now."""
        await self.recompose()

    def _keys(self) -> list[dict[str, Any]]:
        """Return each action that has a key on this line, with the first of its keys."""
        first: dict[str, ActiveBinding] = {}
        for one in self.screen.active_bindings.values():
            if one.binding.show:
                first.setdefault(one.binding.action, one)
        return [self._key(one) for one in self._that_fit(first.values())]

    def _that_fit(self, keys: Iterable[ActiveBinding]) -> Iterator[ActiveBinding]:
        """Yield the first ones: a word that is cut says nothing."""
        # The line begins and ends with a space.
        room = self.app.size.width - 2
        for one in keys:
            room -= cell_len(f"{self.app.get_key_display(one.binding)} {one.binding.description}")
            if room < 0:
                return
            yield one
            # Between it and the next one.
            room -= 1

    def _key(self, active: ActiveBinding) -> dict[str, Any]:
        return {
            "key": active.binding.key,
            "key_display": self.app.get_key_display(active.binding),
            "description": active.binding.description,
            "action": active.binding.action,
            "disabled": not active.enabled,
            "tooltip": active.tooltip,
        }
