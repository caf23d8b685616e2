"""SlashCommands: what a person types after a slash, done on this screen."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from textual.content import Content

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.exchange.files import export_named
from bullpen.file_changes import ChangeRecord
from bullpen.tui.text import one_line
from bullpen.view.change_lookup import all_changes, find_changes, is_of_several
from bullpen.view.changes import Changes, changes_of
from bullpen.view.checks import checks_text, find_checks
from bullpen.view.combined_changes import kept_beside, with_combined
from bullpen.view.command_arguments import Member, Nothing, Text
from bullpen.view.commands import Command, Typed, run_command
from bullpen.view.explanation import Explanation, explain, explain_now
from bullpen.view.status_lines import who_lines
from bullpen.view.summaries import summaries_text
from bullpen.view.turn_lookup import LAST, find_turn

if TYPE_CHECKING:
    from textual.screen import Screen

LONGEST_NUMBER = 15

SCREEN_COMMANDS = (
    Command(
        name="fork",
        argument="[N]",
        purpose="open a new conversation with the messages up to number N, or up to the selected one, or with all",
        example="/fork 14",
        takes=Text,
        read=lambda text, _team: Text(text=text),
    ),
    Command(name="theme", purpose="switch between dark and light"),
)
"""The commands that only this door has."""


class SlashCommands:
    """Runs commands on one screen. What is not possible is raised as a BullpenError."""

    def __init__(
        self,
        screen: "Screen[None]",
        conversation: Conversation,
        sender: str | None,
        say: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._screen = screen
        self._say = say
        self._conversation = conversation
        self._sender = sender

    async def run(self, typed: Typed) -> None:
        """Change the conversation, or show something."""
        if typed.command.run is None:
            await HANDLERS[typed.command.name](self, typed.given)
        elif answer := await run_command(typed, self._conversation, self._sender):
            self._screen.notify(one_line(answer, 500), markup=False)

    async def queue(self, _: Nothing) -> None:
        """Go to the queue."""
        await self._screen.run_action("queue")

    async def who(self, _: Nothing) -> None:
        """Show who is in the team, and what each agent remembers."""
        self._read(Content.styled("Who is in the team", "bold"), "\n".join(who_lines(self._conversation)))

    async def prompt(self, given: Member) -> None:
        """Show what an agent would be given now."""
        self._show(await explain_now(self._conversation, given.member))

    async def explain(self, given: Text) -> None:
        """Show what an agent was given in a turn; without a number, in the last one."""
        turn = await self._conversation.read(find_turn, given.text or LAST)
        self._show(await self._conversation.read(explain, turn.id))

    async def diff(self, given: Text) -> None:
        """Show what was changed in the files."""
        records = await self._conversation.read(find_changes, given.text)
        if is_of_several(given.text):
            records = await asyncio.to_thread(with_combined, records, await self._conversation.read(kept_beside))
        if records:
            self.show_changes(records)
        else:
            self._screen.notify("No change of files is recorded there. /changes lists all of them.", markup=False)

    async def checks(self, given: Text) -> None:
        """Show what checks said after a turn, with their output."""
        results = await self._conversation.read(find_checks, given.text)
        title = Content.assemble(("Checks ", "bold"), f"after turn {one_line(results[0].turn_id, 20)}")
        self._read(title, checks_text(results))

    async def changes(self, _: Nothing) -> None:
        """Show everything that was changed in the conversation."""
        await self._screen.run_action("changes")

    async def all_changes(self) -> Changes:
        """Return everything that was changed in the conversation."""
        records = await self._conversation.read(all_changes)
        return await asyncio.to_thread(changes_of, records, await self._conversation.read(kept_beside))

    def show_changes(self, records: Sequence[ChangeRecord], path: str = "") -> None:
        """Show changes line by line."""
        from bullpen.tui.diff_screen import DiffScreen

        self._screen.app.push_screen(DiffScreen(records, self._conversation, self._say, path=path))

    async def compare(self, given: Text) -> None:
        """Show several results beside each other."""
        await self._screen.run_action(f"compare({given.text!r})")

    async def summaries(self, _: Nothing) -> None:
        """Show what was summed up."""
        text = await self._conversation.read(summaries_text, self._conversation.progress)
        self._read(Content.assemble(("Summaries", "bold")), text)

    async def search(self, given: Text) -> None:
        """Find what was said."""
        await self._screen.run_action(f"search({given.text!r})")

    async def open(self, given: Text) -> None:
        """Show the other conversations of this folder."""
        await self._screen.run_action(f"conversations({given.text!r})")

    async def new(self, _: Nothing) -> None:
        """Begin another conversation with the same team."""
        await self._screen.run_action("new")

    async def fork(self, given: Text) -> None:
        """Fork the conversation at a message, and open the new one."""
        number = given.text.removeprefix("#")
        if number and not (number.isascii() and number.isdecimal() and len(number) <= LONGEST_NUMBER):
            raise BullpenError("/fork takes the number of a message, for example: /fork 14")
        await self._screen.run_action(f"fork({int(number) if number else None})")

    async def export(self, given: Text) -> None:
        """Write the conversation to a file."""
        path = await self._conversation.read(export_named, given.text)
        self._screen.notify(f"Written to {one_line(str(path), 200)}.", markup=False)

    async def help(self, _: Text) -> None:
        """Show every key and every command."""
        await self._screen.run_action("help")

    async def quit(self, _: Nothing) -> None:
        """Leave."""
        await self._screen.run_action("app.leave")

    async def theme(self, _: Nothing) -> None:
        """Switch between dark and light."""
        await self._screen.run_action("app.theme")

    def _read(self, title: Content, text: str) -> None:
        from bullpen.tui.text_screen import TextScreen

        self._screen.app.push_screen(TextScreen(title, text))

    def _show(self, explanation: Explanation) -> None:
        if explanation.prompt is None:
            which = f"{explanation.title} of {one_line(explanation.member, 40)}"
            self._screen.notify(f"{which} has not started, so nothing was sent yet.", markup=False)
        else:
            from bullpen.tui.prompt_screen import PromptScreen

            self._screen.app.push_screen(PromptScreen(explanation, self._conversation))


HANDLERS: dict[str, Callable[[SlashCommands, Any], Awaitable[None]]] = {
    "queue": SlashCommands.queue,
    "who": SlashCommands.who,
    "prompt": SlashCommands.prompt,
    "explain": SlashCommands.explain,
    "diff": SlashCommands.diff,
    "checks": SlashCommands.checks,
    "changes": SlashCommands.changes,
    "compare": SlashCommands.compare,
    "summaries": SlashCommands.summaries,
    "search": SlashCommands.search,
    "export": SlashCommands.export,
    "help": SlashCommands.help,
    "quit": SlashCommands.quit,
    "open": SlashCommands.open,
    "new": SlashCommands.new,
    "fork": SlashCommands.fork,
    "theme": SlashCommands.theme,
}
