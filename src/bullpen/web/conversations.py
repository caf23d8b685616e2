"""The hub: the conversations that this process has open, for as long as it runs and whoever looks."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from bullpen.app import NO_EXTRAS, open_conversation
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.conversation.owner import is_alive
from bullpen.errors import BullpenError, ReadOnlyHere
from bullpen.store.base import Store, StoredConversation
from bullpen.store.thread import StoreThread
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.trust import Trust
from bullpen.web.live import Room

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST_OPEN = 100


class Hub:
    """Opens conversations, and keeps them open. Turns belong to a conversation: no tab that closes ends one."""

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        *,
        team: LoadedTeam | None = None,
        trust: Trust | None = None,
        extra: Mapping[str, Extra] = NO_EXTRAS,
    ) -> None:
        self.team = team
        """What new conversations are of; None: there can be none."""
        self.store = store
        self._thread = thread
        self._trust = trust or Trust()
        self._extra = extra
        self._open: dict[str, _Opened] = {}
        self._opening = asyncio.Lock()

    def get(self, conversation_id: str) -> Room | None:
        """Return a conversation that is open here."""
        opened = self._open.get(conversation_id)
        return None if opened is None else opened.room

    async def need(self, conversation_id: str) -> Room:
        """Return a conversation that is open here, or raise UnknownConversation or ReadOnlyHere."""
        room = self.get(conversation_id)
        if room is None:
            await self.read(self._stored, conversation_id)
            raise ReadOnlyHere(f"Conversation {conversation_id} is not open here. Continue it first.")
        return room

    async def begin(self) -> Room:
        """Open a new conversation of the team that the server was started with."""
        if self.team is None:
            raise ReadOnlyHere("There is no team here to begin with. Start `bullpen serve` with a team file.")
        return await self._opened(self.team, None)

    async def resume(self, conversation_id: str) -> Room:
        """Open a conversation again, if its team file is there and trusted, and nobody else has it open."""
        stored = await self.read(self._stored, conversation_id)
        opened = self.get(conversation_id)
        return opened or await self._opened(await asyncio.to_thread(self._team_of, stored), conversation_id)

    async def let_go(self, conversation_id: str) -> None:
        """Close a conversation in which nobody is at work, so that another process may open it."""
        room = await self.need(conversation_id)
        if room.conversation.running:
            raise ReadOnlyHere("Somebody is at work in this conversation. Cancel that first, or wait.")
        await self._open.pop(conversation_id).close()

    async def read(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Do something that asks the store, in the store's own thread."""
        return await self._thread.do(work, *args, **kwargs)

    async def ask(self, work: Callable[[Store], Result]) -> Result:
        """Call something with the store, in the store's own thread."""
        return await self.read(work, self.store)

    def why_read_only(self, stored: StoredConversation) -> str:
        """Return why a conversation cannot be continued here, or nothing if it can. Reads files: not for the loop."""
        if stored.owner is not None and is_alive(stored.owner):
            return f"It is open in process {stored.owner.pid}. Speak there; what is said appears here."
        try:
            self._team_of(stored)
        except BullpenError as error:
            return str(error)
        return ""

    async def close(self) -> None:
        """Close every conversation. What runs is cancelled, and what waits is there the next time."""
        opened, self._open = list(self._open.values()), {}
        await asyncio.gather(*(one.close() for one in opened))

    async def _opened(self, team: LoadedTeam, resume: str | None) -> Room:
        # Shielded: a browser that goes away meanwhile must not leave a conversation half open.
        return await asyncio.shield(asyncio.ensure_future(self._keep_open(team, resume)))

    async def _keep_open(self, team: LoadedTeam, resume: str | None) -> Room:
        async with self._opening:
            already = self.get(resume) if resume else None
            if already is not None:
                return already
            if len(self._open) >= MOST_OPEN:
                raise ReadOnlyHere(f"{MOST_OPEN} conversations are open here. Close one first.")
            opened = await _Opened.begin(
                partial(open_conversation, team, self.store, self._thread, resume, self._extra)
            )
            self._open[opened.room.conversation.id] = opened
            return opened.room

    def _stored(self, conversation_id: str) -> StoredConversation:
        return self.store.conversation(conversation_id)

    def _team_of(self, stored: StoredConversation) -> LoadedTeam:
        """Return the team of a stored conversation, or raise the sentence that says why it may not run."""
        if not stored.team_path:
            raise ReadOnlyHere("Its team was no file, so it cannot be continued here.")
        path = Path(stored.team_path)
        if self.team is not None and self.team.path == path:
            # What was agreed to when the server was started is what runs, whatever the file says by now.
            return self.team
        loaded = load_team(path)
        if not self._trust.knows(loaded.path, loaded.text):
            raise ReadOnlyHere(
                f"{path} is not trusted, or has changed. Agree to it in a terminal: bullpen serve {path}"
            )
        return loaded


class _Opened:
    """An open conversation, with the task that entered it and will leave it."""

    def __init__(self, room: Room, task: "asyncio.Task[None]", leave: asyncio.Event) -> None:
        self.room = room
        self._task = task
        self._leave = leave

    @classmethod
    async def begin(cls, enter: Callable[[], AbstractAsyncContextManager[Conversation]]) -> "_Opened":
        leave = asyncio.Event()
        entered: asyncio.Future[Conversation] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(_stay(enter, entered, leave))
        return cls(Room(await entered), task, leave)

    async def close(self) -> None:
        self._leave.set()
        await self._task


async def _stay(
    enter: Callable[[], AbstractAsyncContextManager[Conversation]],
    entered: "asyncio.Future[Conversation]",
    leave: asyncio.Event,
) -> None:
    try:
        async with enter() as conversation:
            entered.set_result(conversation)
            await leave.wait()
    except Exception as error:
        if entered.done():
            raise
        entered.set_exception(error)
