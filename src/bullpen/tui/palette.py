"""The command palette: every command, found by any of its words."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.commands import COMMANDS, Command

if TYPE_CHECKING:
    from bullpen.tui.chat import ChatScreen


class CommandProvider(Provider):
    """Feeds the palette from the one table of commands."""

    async def discover(self) -> Hits:
        """Yield every command."""
        for command, typed in _commands():
            yield DiscoveryHit(Content(typed), self._chosen(command), text=typed, help=escape(command.purpose))

    async def search(self, query: str) -> Hits:
        """Yield the commands that fit what was typed."""
        matcher = self.matcher(query)
        for command, typed in _commands():
            score = max(matcher.match(typed), matcher.match(command.purpose))
            if score > 0:
                yield Hit(
                    score, matcher.highlight(typed), self._chosen(command), text=typed, help=escape(command.purpose)
                )

    def _chosen(self, command: Command) -> Any:
        screen: ChatScreen = self.screen  # type: ignore[assignment]
        return partial(screen.begin_command, command)


def _commands() -> Iterator[tuple[Command, str]]:
    """Yield every command with how it is typed."""
    for command in (*COMMANDS.values(), *SCREEN_COMMANDS):
        yield command, f"/{command.name} {command.argument}".rstrip()
