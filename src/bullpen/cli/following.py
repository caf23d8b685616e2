"""Following a conversation: every news goes to whoever shows it, until all of it is shown."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bullpen.conversation.loop import Conversation
from bullpen.conversation.news import News

Tell = Callable[[News], None]


class Follower:
    """Hands news on in a task of its own. If showing fails, whoever waits here learns of it."""

    def __init__(self, conversation: Conversation, tell: Tell) -> None:
        self._conversation = conversation
        self._tell = tell
        self._shown = conversation.last_number
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def until_quiet(self) -> None:
        """Wait until nobody is at work, and all that happened is shown."""
        quiet = asyncio.ensure_future(self._conversation.until_quiet())
        try:
            await self._first_of(quiet)
        finally:
            quiet.cancel()
        await self.until_shown()

    async def until_shown(self) -> None:
        """Wait until all that has happened is shown."""
        while self._shown < self._conversation.last_number:
            self._more.clear()
            more = asyncio.ensure_future(self._more.wait())
            try:
                await self._first_of(more)
            finally:
                more.cancel()

    async def follow(self) -> None:
        """Show news until the conversation is closed."""
        with self._conversation.viewing(after=self._shown) as viewer:
            async for numbered in viewer:
                self._tell(numbered.news)
                self._shown = numbered.number
                self._more.set()

    async def _first_of(self, other: "asyncio.Future[object] | asyncio.Future[None]") -> None:
        """Wait for something, or raise what stopped us from showing."""
        if self._task is None:
            raise RuntimeError("nobody follows")
        await asyncio.wait([other, self._task], return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()

    def start(self) -> asyncio.Task[None]:
        """Begin to follow."""
        self._task = asyncio.ensure_future(self.follow())
        return self._task


@asynccontextmanager
async def following(conversation: Conversation, tell: Tell) -> AsyncIterator[Follower]:
    """Follow a conversation from now on."""
    follower = Follower(conversation, tell)
    task = follower.start()
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
