"""The command palette: every command, found by any of its words."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import work
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.markup import escape

from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.commands import COMMANDS, Command

if TYPE_CHECKING:
    from bullpen.tui.chat import ChatScreen


class Palette(CommandPalette):
    """Textual's palette, safe from keys and results that come before it is laid out or after it was left."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError, NoMatches):
            super()._action_command_list(action)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        with suppress(NoMatches):
            await CommandPalette._gather_commands.__wrapped__(self, search_value)  # type: ignore[attr-defined]


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
