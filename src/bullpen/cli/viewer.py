"""Following a conversation: every event is handed to what shows it, until all of it is shown."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bullpen.cli.plain.transcript import Show
from bullpen.cli.typed_commands import to_type
from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted
from bullpen.view.change_lookup import changes_after
from bullpen.view.checks import checks_after
from bullpen.view.listing import earlier_beside
from bullpen.view.messages import plain_messages, rebuilt_words
from bullpen.view.state import conversation_view
from bullpen.view.status_lines import status_line

Tell = Callable[[ConversationEvent], Awaitable[None] | None]
"""Shows an event; if that takes a while, it can be waited for."""
Pause = Callable[[], None]

PAUSE_SECONDS = 0.2
"""After so long without an event, what was held back is shown."""


class Follower:
    """Hands events on in a task of its own. If showing fails, the methods that wait raise why."""

    def __init__(self, conversation: Conversation, tell: Tell, pause: Pause) -> None:
        self._conversation = conversation
        self._tell = tell
        self._pause = pause
        self._shown = conversation.last_number
        self._more = asyncio.Event()
        self._pausing: asyncio.TimerHandle | None = None
        self._task = asyncio.ensure_future(self._follow())

    async def until_quiet(self) -> None:
        """Wait until no turn is running, and all that happened is shown."""
        await self.until(self._conversation.until_quiet())
        await self.until_shown()

    async def until_shown(self) -> None:
        """Wait until all that has happened is shown."""
        while self._shown < self._conversation.last_number:
            self._more.clear()
            await self.until(self._more.wait())
            if self._task.done():
                return

    async def _follow(self) -> None:
        """Show events until the conversation is closed. Who was too slow is disconnected, and continues."""
        last = -1
        while self._shown != last:
            last = self._shown
            with self._conversation.viewing(after=last) as viewer:
                async for numbered in viewer:
                    await self._show(numbered)

    async def _show(self, numbered: Numbered) -> None:
        if self._pausing is not None:
            self._pausing.cancel()
        if (telling := self._tell(numbered.event)) is not None:
            await telling
        self._shown = numbered.number
        self._more.set()
        self._pausing = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._catch_up)

    def _catch_up(self) -> None:
        # If nobody reads our output any more, the next event will find out.
        with contextlib.suppress(OSError):
            self._pause()

    async def until(self, something: Coroutine[Any, Any, Any]) -> None:
        """Wait for something, or raise what stopped us from showing."""
        waiting: asyncio.Task[Any] = asyncio.ensure_future(something)
        try:
            await asyncio.wait([waiting, self._task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """Show no more."""
        if self._pausing is not None:
            self._pausing.cancel()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@asynccontextmanager
async def following(conversation: Conversation, tell: Tell, pause: Pause = lambda: None) -> AsyncIterator[Follower]:
    """Follow a conversation from now on."""
    follower = Follower(conversation, tell, pause)
    try:
        yield follower
    finally:
        await follower.stop()


LAST_MESSAGES = 5


async def show_state(conversation: Conversation, show: Show) -> None:
    """Write the last messages, what needs a decision, and who is waiting."""
    messages = await conversation.read(plain_messages, limit=LAST_MESSAGES)
    if messages and messages[0].sequence > 1:
        earlier = counted(messages[0].sequence - 1, "earlier message")
        show.note(f"({earlier}: bullpen sessions show {conversation.id} --all)")
    first = messages[0].sequence if messages else 1
    changes = await conversation.read(changes_after, first=first if first > 1 else 0)
    checks = await conversation.read(checks_after, first=first)
    for shown in messages:
        show.message(shown.message, shown.sequence)
        if shown.rebuilt:
            show.note(f"  {rebuilt_words(shown.rebuilt)}", "yellow")
        for turn in shown.unanswered:
            show.unanswered(turn)
        for record in changes.get(shown.sequence, ()):
            show.changed(record)
        for result in checks.get(shown.sequence, ()):
            show.checked(result)
    view = conversation_view(conversation)
    for decision in view.decisions:
        show.decision(decision)
    if waiting := [turn.member for turn in view.queue if not turn.held]:
        show.note(f"In the queue: {', '.join(waiting)}")


async def greet(conversation: Conversation, show: Show, db: Path | None) -> None:
    """Write which conversation a person is in, with whom, what to type, and how to continue the one before."""
    agents = ", ".join(member.name for member in conversation.team.agents)
    show.note(f"{conversation.id} with {agents}. /help says what you can type; Ctrl-D leaves.")
    earlier = await conversation.read(earlier_beside)
    if earlier is not None:
        again = to_type(f"chat --resume {earlier.id}", db)
        show.note(f"Earlier here: “{safe_line(earlier.title)}” To continue it, leave, and type: {again}")


def status_of(conversation: Conversation) -> str:
    """Return who is working and who is waiting, on one safe line; nothing if there is nothing to say."""
    return safe_line(status_line(conversation_view(conversation)))
