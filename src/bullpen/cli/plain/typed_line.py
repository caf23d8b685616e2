"""ChatLines: what becomes of the lines that a person sends in a chat, at a terminal or through a pipe."""

from bullpen.cli.plain.commands import ShownCommands
from bullpen.cli.plain.transcript import Show
from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.view.commands import read_command, run_command
from bullpen.view.state import conversation_view

YES = ("y", "yes")
NO = ("", "n", "no")


class ChatLines:
    """Messages, commands, and the one key that asks whom an agent probably meant."""

    def __init__(self, conversation: Conversation, show: Show, sender: str | None) -> None:
        self.wants_to_leave = False
        self.unsent = ""
        """The last message, if it could not be sent."""
        self._conversation = conversation
        self._show = show
        self._sender = sender
        self._asked_to_leave = False
        self._shown = ShownCommands(conversation, show, self.leave)

    async def take(self, text: str) -> bool:
        """Do what a line says. Return whether that worked; if not, the person was told why."""
        self.unsent = ""
        word = text.strip().lower()
        if self._asked_to_leave:
            self._asked_to_leave = False
            self.wants_to_leave = word in YES
            if self.wants_to_leave or word in NO:
                return True
        try:
            await self._do(text, word)
        except BullpenError as error:
            self._show.note(f"! {error}", "red")
            return False
        except OSError as error:
            self._show.note(f"! {error.strerror or error}", "red")
            return False
        return True

    async def _do(self, text: str, word: str) -> None:
        if word in ("", *YES):
            text = self._probably_meant() or text
        typed = read_command(text, self._conversation.team)
        if typed is None:
            await self._say(text)
        elif typed.command.run is None:
            await self._shown.run(typed)
        elif told := await run_command(typed, self._conversation, self._sender):
            self._show.note(told)

    async def _say(self, text: str) -> None:
        if text.strip():
            self.unsent = text
            await self._conversation.say(text, sender=self._sender)
            self.unsent = ""

    def _probably_meant(self) -> str:
        """Return the command that asks whom an agent probably meant to hand over to, while that is undecided."""
        decisions = conversation_view(self._conversation).decisions
        return next((decision.choices[0].typed for decision in decisions if decision.kind == "missed"), "")

    def leave(self) -> None:
        """Leave if no turn is running; else ask first."""
        names = [running.turn.member for running in self._conversation.running.values()]
        if not names:
            self.wants_to_leave = True
            return
        self._asked_to_leave = True
        verb = "is" if len(names) == 1 else "are"
        self._show.note(f"{', '.join(names)} {verb} working. Leave, and cancel that? [y/N]", "yellow")
