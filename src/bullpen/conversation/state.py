"""Ledger: one conversation as it stands. Everything is on the disk before it is true in memory.

Whoever changes it holds `changing`, so that what was decided is still so when it is written.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import UnknownMessage
from bullpen.messages import ConversationMessage
from bullpen.routing.progress import Progress
from bullpen.routing.queue import PUT_FIRST, TurnQueue, WaitingTurn
from bullpen.store.base import Owner, StateChange, Store, StoredConversation, StoredMessage, Turn, TurnEnd
from bullpen.store.thread import StoreThread

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Change(Struct, frozen=True, kw_only=True):
    """What becomes different beside messages and turns; what is not given stays."""

    team_task: str | UnsetType | None = UNSET
    waits_for: str | UnsetType | None = UNSET
    paused: str | UnsetType | None = UNSET
    progress: Progress | UnsetType = UNSET


NO_CHANGE = Change()


class Ledger:
    """The queue, the running turns and the state of one conversation that this process owns."""

    def __init__(self, store: Store, stored: StoredConversation, owner: Owner, thread: StoreThread) -> None:
        self.changing = asyncio.Lock()
        self.conversation_id = stored.id
        self.running: dict[str, WaitingTurn] = {}
        self.lost = tuple(turn.waiting for turn in store.running(stored.id))
        """The turns that ran when the process before us ended."""
        self.messages_before = stored.messages
        """How many messages there were when this process took the conversation over."""
        self._store = store
        self._owner = owner
        self._thread = thread
        self.team_task = stored.team_task
        self.waits_for = stored.waits_for
        self.paused = stored.paused
        self.progress = msgspec.convert(stored.progress, Progress)
        self.queue = TurnQueue(turn.waiting for turn in store.queued(stored.id))
        self.undecided = {turn_id: store.turn(stored.id, turn_id).waiting for turn_id in self.progress.undecided}

    async def outside(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Do something that blocks in the store's own thread."""
        return await self._thread.do(work, *args, **kwargs)

    async def read(
        self,
        work: Callable[Concatenate[Store, str, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call something with the store and the conversation's id in the store's own thread."""
        return await self.outside(work, self._store, self.conversation_id, *args, **kwargs)

    async def add(
        self,
        message: ConversationMessage,
        *,
        turns: tuple[WaitingTurn, ...],
        drops: tuple[WaitingTurn, ...],
        finishes: TurnEnd | None = None,
        change: Change,
    ) -> StoredMessage:
        """Store a message with all that it causes. One that is stored already changes nothing."""
        stored: StoredMessage = await self._write(
            self._store.append,
            message,
            turns=turns,
            drops=_ids(drops),
            finishes=finishes,
            change=_for_store(change),
        )
        if not stored.already_stored:
            if finishes is not None:
                self.running.pop(finishes.turn_id, None)
            self.queue.remove(_ids(drops))
            self.queue.add(turns)
            self._apply(change)
        return stored

    async def update(
        self,
        *,
        at: int,
        turns: tuple[WaitingTurn, ...] = (),
        drops: tuple[WaitingTurn, ...] = (),
        change: Change = NO_CHANGE,
    ) -> None:
        """Queue turns, drop turns and change the state."""
        await self._write(self._store.update, at=at, turns=turns, drops=_ids(drops), change=_for_store(change))
        self.queue.remove(_ids(drops))
        self.queue.add(turns)
        self._apply(change)

    def take(self, turns: tuple[WaitingTurn, ...]) -> tuple[WaitingTurn, ...]:
        """Take turns out of the queue to begin them. The store learns of it when what they are given is known."""
        self.queue.remove(_ids(turns))
        self.running.update({turn.id: turn for turn in turns})
        return turns

    def next_group(self, people: Collection[str]) -> tuple[WaitingTurn, ...]:
        """Return the turns that may begin together."""
        return self.queue.next_group(people=people, held=self.progress.held, undecided=self.undecided.values())

    def is_behind_others(self, turn: WaitingTurn) -> bool:
        """Tell whether others come before it in its relay, who wait, are at work, or have failed."""
        others = [*self.queue.waiting, *self.running.values(), *self.undecided.values()]
        return any(other.message_id == turn.message_id and other.step < turn.step for other in others)

    def put_back(self, turn: WaitingTurn) -> None:
        """Let a turn wait again that was taken and not begun."""
        del self.running[turn.id]
        self.queue = TurnQueue([turn, *self.queue.waiting])

    async def messages(
        self, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return stored messages."""
        messages: list[StoredMessage] = await self._write(self._store.messages, after=after, before=before, limit=limit)
        return messages

    async def last_message_id(self) -> str | None:
        """Return the id of the newest message."""
        newest = await self.messages(limit=1)
        return newest[0].message.id if newest else None

    async def turn(self, turn_id: str) -> Turn:
        """Return one turn."""
        turn: Turn = await self._write(self._store.turn, turn_id)
        return turn

    async def message(self, message_id: str) -> StoredMessage | None:
        """Return one message, if it is stored."""
        try:
            stored: StoredMessage = await self._write(self._store.message, message_id)
        except UnknownMessage:
            return None
        return stored

    async def begin(self, turn: WaitingTurn, given: AssemblerOutput, *, at: int) -> None:
        """Record that a turn runs, and what its agent is given."""
        change = Change(progress=replace(self.progress, turns=self.progress.turns + 1))
        await self._write(
            self._store.start_turn, turn.id, owner=self._owner, given=given, at=at, change=_for_store(change)
        )
        self._apply(change)

    async def end(self, turn: WaitingTurn, end: TurnEnd, change: Change) -> None:
        """Record that a turn ended without a reply; a person must decide about it."""
        progress = self.progress if change.progress is UNSET else change.progress
        change = replace(change, progress=replace(progress, undecided=(*progress.undecided, turn.id)))
        await self._write(self._store.end_turn, end, change=_for_store(change))
        self.running.pop(turn.id, None)
        self.undecided[turn.id] = turn
        self._apply(change)

    async def retry(self, turn: WaitingTurn, *, at: int, change: Change) -> WaitingTurn:
        """Queue an undecided turn again, before all others."""
        again = self.new_turn(turn.member, turn.message_id, intent=PUT_FIRST, step=turn.step)
        change = self._decided(turn.id, change, turns_made=self.progress.turns_made + 1)
        await self._write(self._store.requeue, turn.id, again, at=at, change=_for_store(change))
        self.queue.put_first([again])
        self._apply(change)
        return again

    async def settle(
        self,
        turn: WaitingTurn,
        *,
        at: int,
        turns: tuple[WaitingTurn, ...] = (),
        drops: tuple[WaitingTurn, ...] = (),
        change: Change,
    ) -> None:
        """Take a turn off the undecided ones; others may be asked in its place."""
        change = self._decided(turn.id, change, turns_made=self.progress.turns_made + len(turns))
        await self.update(at=at, turns=turns, drops=drops, change=change)

    async def reorder(self, turns: tuple[WaitingTurn, ...]) -> None:
        """Let waiting turns begin before all others."""
        await self._write(self._store.reorder, _ids(turns))
        self.queue.put_first(turns)

    async def interrupt(self, *, at: int, change: Change) -> None:
        """Let the turns that were lost be interrupted and wait for a person.

        They are undecided first: if we are killed before the store calls them interrupted, they are found again.
        """
        undecided = tuple(dict.fromkeys([*self.progress.undecided, *_ids(self.lost)]))
        change = replace(change, progress=replace(self.progress, undecided=undecided))
        self.undecided.update({turn.id: turn for turn in self.lost})
        await self.update(at=at, change=change)
        await self._write(self._store.recover, at=at)

    def new_turn(self, member: str, message_id: str, *, intent: int, step: int = 0, number: int = 1) -> WaitingTurn:
        """Return a turn with the next number, or the one after it; whoever stores it counts it in turns_made."""
        turn_id = str(self.progress.turns_made + number)
        return WaitingTurn(id=turn_id, member=member, message_id=message_id, intent=intent, step=step)

    def _decided(self, turn_id: str, change: Change, *, turns_made: int) -> Change:
        progress = self.progress if change.progress is UNSET else change.progress
        undecided = tuple(other for other in progress.undecided if other != turn_id)
        return replace(change, progress=replace(progress, undecided=undecided, turns_made=turns_made))

    async def _write(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self.outside(method, self.conversation_id, *args, **kwargs)

    def _apply(self, change: Change) -> None:
        if change.team_task is not UNSET:
            self.team_task = change.team_task
        if change.waits_for is not UNSET:
            self.waits_for = change.waits_for
        if change.paused is not UNSET:
            self.paused = change.paused
        if change.progress is not UNSET:
            self.progress = change.progress
            self.undecided = {
                turn_id: turn for turn_id, turn in self.undecided.items() if turn_id in change.progress.undecided
            }


def _ids(turns: Iterable[WaitingTurn]) -> tuple[str, ...]:
    return tuple(turn.id for turn in turns)


def _for_store(change: Change) -> StateChange:
    return StateChange(
        team_task=change.team_task,
        waits_for=change.waits_for,
        paused=change.paused,
        progress=UNSET if change.progress is UNSET else msgspec.to_builtins(change.progress),
    )
