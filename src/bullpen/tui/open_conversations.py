"""OpenConversations: those that this process has open. Turns continue in all of them, whichever is on the screen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from bullpen.app import open_conversation, open_store, open_telemetry
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.running_turn import RunningTurn
from bullpen.database import Database
from bullpen.errors import BullpenError
from bullpen.exchange.forking import fork_conversation
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.trust import Trust

Open = Callable[[LoadedTeam, str | None], AbstractAsyncContextManager[Conversation]]


class OpenConversations:
    """Opens conversations once, and closes all of them at the end."""

    def __init__(self, loaded: LoadedTeam, open_one: Open, stack: AsyncExitStack, database: Database) -> None:
        self.loaded = loaded
        """The team of the conversation that was opened last."""
        self._open_one = open_one
        self._stack = stack
        self._database = database
        self._opened: dict[str, tuple[Conversation, LoadedTeam]] = {}
        self.latest = ""
        """The id of the conversation that was opened last."""

    @property
    def running(self) -> list[RunningTurn]:
        """The running turns of all of them."""
        return [turn for conversation, _ in self._opened.values() for turn in conversation.running.values()]

    @property
    def current(self) -> Conversation:
        """The one that was opened last."""
        return self._opened[self.latest][0]

    async def open(self, conversation_id: str | None, team_path: str = "") -> Conversation:
        """Return a conversation, opened if it is not open yet; None begins one with the same team."""
        if conversation_id is None or conversation_id not in self._opened:
            loaded = await asyncio.to_thread(self._team_at, Path(team_path)) if team_path else self.loaded
            opened = await self._stack.enter_async_context(self._open_one(loaded, conversation_id))
            conversation_id = opened.id
            self._opened[conversation_id] = (opened, loaded)
        conversation, self.loaded = self._opened[conversation_id]
        self.latest = conversation_id
        return conversation

    async def fork(self, conversation_id: str, at: int | None) -> Conversation:
        """Return a new conversation with the messages of another one up to a number, or with all, opened."""
        # Not in the database's own thread, where turns wait for it: a long conversation takes a while.
        fork = await asyncio.to_thread(fork_conversation, self._database, conversation_id, at)
        return await self.open(fork.id, fork.team_path)

    def _team_at(self, path: Path) -> LoadedTeam:
        """Return the team in a file: the one that is open already, or one that a person has trusted before."""
        if path == self.loaded.path:
            return self.loaded
        loaded = load_team(path)
        if not Trust().knows(loaded.path, loaded.text):
            raise BullpenError(f"{path} is not trusted, or has changed. Leave, and open it with: bullpen chat {path}")
        return loaded


@asynccontextmanager
async def open_conversations(loaded: LoadedTeam, db: Database | Path | str | None) -> AsyncIterator[OpenConversations]:
    """Open the database for as long as conversations are shown."""
    async with open_telemetry() as telemetry, open_store(db) as (store, thread), AsyncExitStack() as stack:

        def open_one(team: LoadedTeam, resume: str | None) -> AbstractAsyncContextManager[Conversation]:
            return open_conversation(team, store, thread, resume, telemetry=telemetry)

        yield OpenConversations(loaded, open_one, stack, store)
