"""ChatLines: what becomes of the lines that a person sends in a chat, wherever they come from."""

from bullpen.cli.plain.commands import Commands
from bullpen.cli.plain.transcript import Show
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent, HandOverMissed, Said
from bullpen.errors import BullpenError


class ChatLines:
    """Messages, commands, and the one key that does what an agent probably meant."""

    def __init__(self, conversation: Conversation, show: Show, sender: str | None) -> None:
        self.wants_to_leave = False
        self._conversation = conversation
        self._show = show
        self._sender = sender
        self._offered: tuple[str, ...] = ()
        """Whom an agent probably meant to hand over to, while that is still the question."""
        self._asked_to_leave = False
        self._commands = Commands(conversation, show, self.leave)

    def tell(self, news: ConversationEvent) -> None:
        """Show news, and remember what is offered."""
        match news:
            case HandOverMissed(names=names):
                self._offered = names
            case Said():
                self._offered = ()
            case _:
                pass
        self._show.tell(news)

    async def take(self, text: str) -> bool:
        """Do what a line says. Return whether it was done: if not, the person was told why, and may send it again."""
        word = text.strip().lower()
        if self._asked_to_leave:
            self._asked_to_leave = False
            self.wants_to_leave = word in ("y", "yes")
            if self.wants_to_leave or word in ("", "n", "no"):
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
        if self._offered and word in ("", "y", "yes"):
            names, self._offered = self._offered, ()
            await self._conversation.ask(", ".join(names))
        elif text.startswith("/"):
            await self._commands.run(text)
        elif word:
            await self._conversation.say(text, sender=self._sender)

    def leave(self) -> None:
        """Leave, if nobody is at work; else ask first."""
        if not self._conversation.running:
            self.wants_to_leave = True
            return
        names = ", ".join(running.turn.member for running in self._conversation.running.values())
        self._asked_to_leave = True
        self._show.note(f"{names} is at work. Leave, and cancel that? [y/N]", "yellow")
