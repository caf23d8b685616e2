"""Steering: what a person does beside speaking: cancel, drop, go on, retry, skip, hand over, reorder, set the task."""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from bullpen.context.history import History
from bullpen.context.manager import ContextManager, task_too_long
from bullpen.context.prompt import DEFAULT_MAX_BYTES
from bullpen.conversation.broadcast import Broadcast
from bullpen.conversation.events import (
    Decided,
    Dropped,
    News,
    Paused,
    PauseKind,
    Queued,
    Reordered,
    TaskSet,
    Trouble,
    WentOn,
)
from bullpen.conversation.resume import names
from bullpen.conversation.running_turn import RunningTurn, milliseconds
from bullpen.conversation.state import Change, Ledger
from bullpen.errors import ConversationClosed, NobodyToAsk, NothingRuns, NothingToDecide, TurnConflict
from bullpen.markers.grammar import read_markers
from bullpen.messages import ConversationMessage
from bullpen.routing.progress import Progress, counting_again
from bullpen.routing.queue import PUT_FIRST, WaitingTurn
from bullpen.routing.router import Router
from bullpen.team.team import Member, Team

Result = TypeVar("Result")

NOTHING_SAID_YET = "Nothing has been said yet. Say something first."


class Steering:
    """The half of a conversation that acts on turns. Every method returns when what it did is stored."""

    def __init__(self, team: Team, ledger: Ledger, history: History, broadcast: Broadcast) -> None:
        self.team = team
        self.context = ContextManager(
            max_bytes=max((agent.max_bytes for agent in team.agents), default=DEFAULT_MAX_BYTES),
            whitespace=team.whitespace,
            history=history,
            team_task=ledger.team_task,
            on_message_added=self._message_added,
            on_team_task_changed=self._task_changed,
        )
        """What has been said, what the team works on, and what each agent gets to read of it."""
        self._task_set_by = ""
        self.running: dict[str, RunningTurn] = {}
        """The turns at work, by their ids."""
        self._ledger = ledger
        self._broadcast = broadcast
        self._router = Router(team)
        self._people = frozenset(person.name for person in team.people)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changes: set[asyncio.Task[Any]] = set()
        self._something_changed = asyncio.Event()
        """Set when it is time to look whether a turn may begin."""
        self._quiet = asyncio.Event()
        """Set while nobody is at work and nothing can begin."""
        self._closing = asyncio.Event()

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._ledger.conversation_id

    @property
    def team_task(self) -> str | None:
        """What the team works on."""
        return self.context.get_team_task()

    @property
    def waits_for(self) -> str | None:
        """The person whose word is awaited."""
        return self._ledger.waits_for

    @property
    def paused(self) -> str | None:
        """Why nothing begins until a person says so."""
        return self._ledger.paused

    @property
    def waiting(self) -> tuple[WaitingTurn, ...]:
        """The queue, the next turn first."""
        return self._ledger.queue.waiting

    @property
    def held(self) -> tuple[WaitingTurn, ...]:
        """Those of the queue that stand still until a person lets them go on."""
        return tuple(turn for turn in self.waiting if turn.id in self._ledger.progress.held)

    @property
    def undecided(self) -> tuple[WaitingTurn, ...]:
        """Turns that ended without a reply and wait for a person's decision, the latest last."""
        return tuple(self._ledger.undecided.values())

    @property
    def progress(self) -> Progress:
        """What the caps have counted, and what else is remembered."""
        return self._ledger.progress

    async def cancel(self, turn_id: str | None = None) -> tuple[WaitingTurn, ...]:
        """Stop one running turn, or all, and keep the queue until a person goes on or drops it."""
        turns = await self.atomically(self._pause_to_cancel(turn_id))
        tasks = {turn: self._tasks[turn.id] for turn in turns if turn.id in self._tasks}
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values())
        return tuple(tasks)

    async def go_on(self) -> None:
        """Lift a pause: what waits begins, and the caps count from zero."""
        await self.atomically(self._go_on())

    async def drop(self, *, member: str | None = None, turn_ids: Collection[str] = ()) -> tuple[WaitingTurn, ...]:
        """Take waiting turns out of the queue: those with these ids, else a member's, else all."""
        return await self.atomically(self._drop(member, turn_ids))

    async def retry(self, turn_id: str | None = None) -> WaitingTurn:
        """Do a turn again that ended without a reply; without an id, the latest."""
        return await self.atomically(self._retry(turn_id))

    async def skip(self, turn_id: str | None = None) -> WaitingTurn:
        """Go on without a turn that ended without a reply."""
        return await self.atomically(self._hand_over(turn_id, None))

    async def hand_over(self, member: str, turn_id: str | None = None) -> WaitingTurn:
        """Let another member answer in place of one whose turn ended without a reply."""
        return await self.atomically(self._hand_over(turn_id, member))

    async def ask(self, asked: str) -> tuple[WaitingTurn, ...]:
        """Ask members to answer the last message, written as in [NEXT: …]: "a, b" or "a & b"."""
        return await self.atomically(self._ask(asked))

    async def reorder(self, turn_ids: Sequence[str]) -> None:
        """Let these waiting turns begin first, in this order."""
        await self.atomically(self._reorder(turn_ids))

    async def set_task(self, task: str | None, *, by: str | None = None) -> None:
        """Set what the team works on, or nothing."""
        await self.atomically(self._set_task(task, by))

    async def atomically(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do something alone and to its end, even if whoever wanted it does not wait any more."""
        if self._closing.is_set():
            work.close()
            raise ConversationClosed(self.id)
        return await self._atomically(work)

    async def _atomically(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.ensure_future(self._alone(work))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        return await asyncio.shield(task)

    async def _alone(self, work: Coroutine[Any, Any, Result]) -> Result:
        async with self._ledger.changing:
            result = await work
        self._something_changed.set()
        self._quiet.clear()
        return result

    async def _pause(self, kind: PauseKind, text: str) -> None:
        await self._ledger.update(at=milliseconds(), change=Change(paused=text))
        self._publish(Paused(kind=kind, text=text))

    async def _pause_to_cancel(self, turn_id: str | None) -> list[WaitingTurn]:
        """Return the turns to cancel: chosen here, where none of them can end meanwhile."""
        turns = [running.turn for running in self.running.values() if turn_id in (None, running.turn.id)]
        if not turns:
            raise NothingRuns(turn_id)
        verb = "was" if len(turns) == 1 else "were"
        await self._pause("cancelled", f"{names(turns)} {verb} cancelled.")
        return turns

    async def _go_on(self) -> None:
        await self._ledger.update(at=milliseconds(), change=self._after_a_word())
        self._publish(WentOn())

    async def _drop(self, member: str | None, turn_ids: Collection[str]) -> tuple[WaitingTurn, ...]:
        name = None if member is None else self._router.member(member).name
        turns = tuple(turn for turn in self._ledger.queue.of(name) if not turn_ids or turn.id in turn_ids)
        for turn_id in turn_ids:
            if turn_id not in {turn.id for turn in turns}:
                raise TurnConflict(turn_id, "not waiting", "queued")
        left = len(self.waiting) - len(turns)
        change = Change(paused=None) if not left else Change()
        await self._ledger.update(at=milliseconds(), drops=turns, change=change)
        if turns:
            self._publish(Dropped(turns=turns))
        return turns

    async def _retry(self, turn_id: str | None) -> WaitingTurn:
        turn = self._undecided_turn(turn_id)
        self._agent(turn.member)
        again = await self._ledger.retry(turn, at=milliseconds(), change=self._after_a_word())
        self._publish(Decided(turn_id=turn.id, choice=f"again, as turn {again.id}"))
        self._publish(Queued(turns=(again,)))
        return again

    async def _hand_over(self, turn_id: str | None, member: str | None) -> WaitingTurn:
        turn = self._undecided_turn(turn_id)
        turns: tuple[WaitingTurn, ...] = ()
        drops: tuple[WaitingTurn, ...] = ()
        if member is not None:
            name = self._agent(member).name
            turns = (self._ledger.new_turn(name, turn.message_id, intent=PUT_FIRST, step=turn.step),)
            # Nobody answers one message twice: whoever was to come later in the relay comes now.
            drops = tuple(later for later in self._ledger.queue.of(name) if later.message_id == turn.message_id)
        await self._ledger.settle(turn, at=milliseconds(), turns=turns, drops=drops, change=self._after_a_word())
        self._publish(Decided(turn_id=turn.id, choice=f"{turns[0].member} answers" if turns else "skipped"))
        if drops:
            self._publish(Dropped(turns=drops))
        if turns:
            self._publish(Queued(turns=turns))
        return turns[0] if turns else turn

    async def _ask(self, asked: str) -> tuple[WaitingTurn, ...]:
        message_id = await self._ledger.last_message_id()
        route = self._router.route(self._last_person(), read_markers(f"[NEXT: {asked}]"), in_relay=True)
        if message_id is None:
            raise NobodyToAsk(NOTHING_SAID_YET)
        if route.notes or not route.asked:
            raise NobodyToAsk(" ".join(route.notes) or f"{asked!r} names no agent.")
        at_it = [*self.waiting, *self._ledger.running.values()]
        taken = {turn.member for turn in at_it if turn.message_id == message_id}
        fresh = [asked for asked in route.asked if asked.member not in taken]
        if not fresh:
            raise NobodyToAsk(f"{', '.join(asked.member for asked in route.asked)} will answer that already.")
        turns = tuple(
            self._ledger.new_turn(asked.member, message_id, intent=asked.intent, step=asked.step, number=number)
            for number, asked in enumerate(fresh, start=1)
        )
        await self._ledger.update(at=milliseconds(), turns=turns, change=self._after_a_word(new_turns=len(turns)))
        self._publish(Queued(turns=turns))
        return turns

    async def _reorder(self, turn_ids: Sequence[str]) -> None:
        waiting = {turn.id: turn for turn in self.waiting}
        for turn_id in turn_ids:
            if turn_id not in waiting:
                raise TurnConflict(turn_id, "not waiting", "queued")
        await self._ledger.reorder(tuple(waiting[turn_id] for turn_id in turn_ids))
        self._publish(Reordered(turns=self.waiting))

    async def _set_task(self, task: str | None, by: str | None) -> None:
        await self._ledger.update(at=milliseconds(), change=Change(team_task=task or None))
        self._change_task(task or None, by=by or self._last_person().name)
        if note := task_too_long(task or ""):
            self._publish(Trouble(text=note))

    def _change_task(self, task: str | None, *, by: str) -> None:
        """Let the context know the task; its hook tells everyone."""
        self._task_set_by = by
        if task is None:
            self.context.clear_team_task()
        else:
            self.context.set_team_task(task)

    def _task_changed(self, task: str | None) -> None:
        self._publish(TaskSet(task=task, by=self._task_set_by))

    def _after_a_word(self, new_turns: int = 0) -> Change:
        """Return what a person's decision changes: nothing is paused or held any more, and the caps begin anew."""
        progress = counting_again(self.progress, milliseconds())
        turns_made = progress.turns_made + new_turns
        return Change(paused=None, progress=replace(progress, held=(), turns_made=turns_made))

    def _undecided_turn(self, turn_id: str | None) -> WaitingTurn:
        undecided = self._ledger.undecided
        if turn_id is None and undecided:
            return list(undecided.values())[-1]
        if turn_id not in undecided:
            raise NothingToDecide(turn_id)
        return undecided[turn_id]

    def _last_person(self) -> Member:
        """Return the person who spoke last, or the first one of the team."""
        person = self.progress.person
        return self.team.member(person) if person in self._people else self.team.people[0]

    def _agent(self, name: str) -> Member:
        member = self._router.member(name)
        if member.type != "ai":
            raise NobodyToAsk(f"{member.name} is a person.")
        return member

    def _message_added(self, message: ConversationMessage) -> None:
        """Tell everyone of a message; the half of a conversation that speaks knows what there is to tell."""

    def _publish(self, news: News) -> None:
        self._broadcast.publish(news)
