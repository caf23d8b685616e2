"""ConversationState: the state of one conversation. Every change is on disk before it is applied in memory."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.entry import Change, Entry
from bullpen.errors import UnknownMessage
from bullpen.memory import Memory
from bullpen.routing.obstacles import Checking, Situation
from bullpen.routing.progress import MemberUsage, Progress, usage_of_turn
from bullpen.routing.queue import TurnQueue, WaitingTurn
from bullpen.store.base import EndState, Owner, StateChange, Store, StoredConversation, StoredMessage, Turn, first_words
from bullpen.store.thread import Desk
from bullpen.turn_events import Failed

ASKS_FOR_TURNS = frozenset({"allow", "ask", "hand-over", "retry", "stand-in"})
"""Decisions by which a person asks for turns."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

INTERRUPTED = "bullpen stopped during this turn. Files may have been changed."


class UndecidedTurn(Struct, frozen=True, kw_only=True):
    """A turn that ended without a reply, until a person decides about it."""

    turn: WaitingTurn
    state: EndState
    failure: Failed | None = None

    @property
    def id(self) -> str:
        """The turn's id."""
        return self.turn.id

    @property
    def member(self) -> str:
        """Whose turn it was."""
        return self.turn.member

    @property
    def reason(self) -> str:
        """Why it ended, in a sentence."""
        if self.failure is None:
            return INTERRUPTED
        return replace(self.failure, hint=self.hint).explanation

    @property
    def hint(self) -> str:
        """What to do about that; the reason ends with it."""
        hint = self.failure.hint if self.failure else ""
        return hint.replace("bullpen explain last ", f"bullpen explain {self.id} ")

    @property
    def sentence(self) -> str:
        """Whose turn ended, and why."""
        return f"{self.member} (turn {self.id}): {self.reason}"


class ConversationState:
    """The queue, the running turns and the rest of one conversation that this process owns."""

    def __init__(self, store: Store, stored: StoredConversation, owner: Owner, thread: Desk) -> None:
        self.conversation_id = stored.id
        self.messages = stored.messages
        """How many messages there are."""
        self.team_task = stored.team_task
        """As it was written; the context cuts it to the limit."""
        self.title = stored.title
        """What a person calls it; None: nothing of its own."""
        self.first_words = stored.first_words
        self.waits_for = stored.waits_for
        self.paused = stored.paused
        self.progress = stored_progress(store, stored)
        self.memories = last_memories(store, stored.id) if stored.messages else {}
        """For each member that has one, what its session holds."""
        queued = store.queued(stored.id) if stored.queued else ()
        self.queue = TurnQueue(turn.waiting for turn in queued)
        self.handed_over = _handed_over(store, stored.id, queued)
        """Turns that waited when it was opened because an agent asked for them, and which; no person has since."""
        self.running: dict[str, WaitingTurn] = {}
        self.checking: dict[str, Checking] = {}
        """The turns that have ended and whose files are being checked, by their ids."""
        undecided = [store.turn(stored.id, turn_id) for turn_id in self.progress.undecided]
        self.undecided = {turn.id: undecided_turn(turn) for turn in undecided}
        running = store.running(stored.id) if stored.running else ()
        self.lost = tuple(turn.waiting for turn in running)
        """The turns that were running when the previous process ended."""
        self._store = store
        self._owner = owner
        self._thread = thread

    # Writing

    async def commit(self, entry: Entry) -> StoredMessage | None:
        """Store an entry, then apply it here. A message that is already stored changes nothing."""
        stored = await self.in_store(_write, self._store, self.conversation_id, self._owner, entry)
        if stored is None or not stored.already_stored:
            self._apply(entry)
        return stored

    async def interrupt_lost_turns(self, at: int) -> None:
        """Mark the turns that the previous process left running as interrupted in the store, too."""
        await self.in_store(self._store.recover, self.conversation_id, at=at, owner=self._owner)

    async def adopt(self, members: Container[str]) -> tuple[WaitingTurn, ...]:
        """Take over the turns of these members that the previous process left running, for they continue elsewhere."""
        adopted = tuple(turn for turn in self.lost if turn.member in members)
        if adopted:
            ids = [turn.id for turn in adopted]
            await self.in_store(self._store.adopt, self.conversation_id, ids, owner=self._owner)
            self.running.update({turn.id: turn for turn in adopted})
            self.lost = tuple(turn for turn in self.lost if turn not in adopted)
        return adopted

    async def give_again(self, turn_id: str, given: AssemblerOutput) -> None:
        """Replace the prompt of a running turn, whose agent has not taken the first one."""
        await self.in_store(self._store.give_again, self.conversation_id, turn_id, owner=self._owner, given=given)

    async def keep_output(self, turn_id: str, data: bytes) -> None:
        """Add to what is stored of a running turn's output."""
        await self.in_store(self._store.keep_output, self.conversation_id, turn_id, data, owner=self._owner)

    async def note_approval(self, record: ApprovalRecord) -> ApprovalRecord:
        """Store a question of a running agent, or the answer to one."""
        return await self.in_store(self._store.note_approval, self.conversation_id, record, owner=self._owner)

    async def approvals(self, turn_ids: Sequence[str] | None = None) -> list[ApprovalRecord]:
        """Return the questions and answers of some turns, or of all."""
        return await self.in_store(self._store.approvals, self.conversation_id, turn_ids=turn_ids)

    async def keep_check(self, result: CheckResult) -> CheckResult:
        """Store a check that begins, or how one ended that has begun, and return it as it is stored."""
        keep = self._store.finish_check if result.number else self._store.add_check
        return await self.in_store(keep, self.conversation_id, result, owner=self._owner)

    async def beat(self, at: int) -> None:
        """Say in the store that this process is alive."""
        await self.in_store(self._store.beat, self.conversation_id, self._owner, at=at)

    async def renumber(self) -> None:
        """Take the next turn's number from the store again."""
        highest = await self.read(_highest_turn)
        self.progress = replace(self.progress, turns_made=max(self.progress.turns_made, highest))

    def begin(self, turns: tuple[WaitingTurn, ...]) -> tuple[WaitingTurn, ...]:
        """Take turns out of the queue to begin them. They are stored as begun when their prompts are known."""
        self.queue.remove(_ids(turns))
        self.running.update({turn.id: turn for turn in turns})
        return turns

    def put_back(self, turn: WaitingTurn) -> None:
        """Put a turn back that was taken out of the queue and could not begin."""
        del self.running[turn.id]
        self.queue = TurnQueue([turn, *self.queue.waiting])

    # Reading

    @property
    def is_of_node(self) -> bool:
        """Whether this process is a node of a cluster."""
        return bool(self._owner.node)

    async def in_store(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Do something that blocks in the store's own thread."""
        return await self._thread.do(work, *args, **kwargs)

    async def read_in_store(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Do something in the store's own thread that reads many things, and stores nothing."""

        def reading() -> Result:
            with self._store.reading_together():
                return work(*args, **kwargs)

        return await self._thread.do(reading)

    async def read(
        self,
        work: Callable[Concatenate[Store, str, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call something with the store and the conversation's id in the store's own thread."""
        return await self.in_store(work, self._store, self.conversation_id, *args, **kwargs)

    @property
    def unallowed(self) -> dict[str, WaitingTurn]:
        """The waiting turns that begin only if a person allows them, by their ids."""
        return {turn.id: turn for turn in self.queue.waiting if turn.id in self.progress.unallowed}

    def situation(
        self,
        people: Collection[str],
        workspaces: Mapping[str, str],
        asleep: Mapping[str, int],
        spent: Collection[str] = (),
    ) -> Situation:
        """Return what decides, besides the queue, which turns may begin."""
        return Situation(
            running=tuple(self.running.values()),
            people=people,
            held=self.progress.blocked,
            undecided=tuple(ended.turn for ended in self.undecided.values()),
            workspaces=workspaces,
            checking=tuple(self.checking.values()),
            asleep=asleep,
            spent=spent,
            apart=self.progress.apart,
        )

    def is_blocked(self, turn: WaitingTurn) -> bool:
        """Return whether an earlier step of its relay is waiting, running, or failed."""
        ended = (ended.turn for ended in self.undecided.values())
        others = [*self.queue.waiting, *self.running.values(), *ended]
        return any(other.message_id == turn.message_id and other.step < turn.step for other in others)

    def new_turn(self, member: str, message_id: str, *, intent: int, step: int = 0, number: int = 1) -> WaitingTurn:
        """Return a turn with the next number, or a later one; the caller adds it to turns_made."""
        turn_id = str(self.progress.turns_made + number)
        return WaitingTurn(id=turn_id, member=member, message_id=message_id, intent=intent, step=step)

    def _apply(self, entry: Entry) -> None:
        if entry.message is not None:
            self.messages += 1
            if not self.first_words and entry.message.speaker.type == "human":
                self.first_words = first_words(entry.message.content)
        if entry.ends is not None:
            turn = self.running.pop(entry.ends.turn_id, None)
            if entry.message is None and turn is not None:
                ended = UndecidedTurn(turn=turn, state=entry.ends.state, failure=entry.ends.failure)
                self.undecided[turn.id] = ended
            if turn is not None and entry.ends.memory is not None:
                self.memories[turn.member] = entry.ends.memory
        self.queue.remove(_ids(entry.drops))
        if entry.retries is None:
            self.queue.add(entry.turns)
            self.queue.put_first(entry.puts_first)
        else:
            self.queue.put_first(entry.turns)
        self._apply_change(entry.change)

    def _apply_change(self, change: Change) -> None:
        if change.team_task is not UNSET:
            self.team_task = change.team_task
        if change.title is not UNSET:
            self.title = change.title
        if change.waits_for is not UNSET:
            self.waits_for = change.waits_for
        if change.paused is not UNSET:
            self.paused = change.paused
        if change.progress is not UNSET:
            self.progress = change.progress
            for turn in self.lost:
                if turn.id in change.progress.undecided:
                    self.undecided.setdefault(turn.id, UndecidedTurn(turn=turn, state="interrupted"))
            kept = change.progress.undecided
            self.undecided = {turn_id: ended for turn_id, ended in self.undecided.items() if turn_id in kept}


def _write(store: Store, conversation_id: str, owner: Owner, entry: Entry) -> StoredMessage | None:
    """Store a whole entry, or nothing."""
    change = _for_store(entry.change)
    if entry.message is not None:
        return store.append(
            conversation_id,
            entry.message,
            turns=entry.turns,
            drops=_ids(entry.drops),
            finishes=entry.ends,
            change=change,
            owner=owner,
        )
    if entry.begins is not None:
        turn, given, order = entry.begins.turn, entry.begins.given, entry.begins.order
        store.start_turn(conversation_id, turn.id, owner=owner, given=given, at=entry.at, change=change, order=order)
    elif entry.ends is not None:
        store.end_turn(conversation_id, entry.ends, change=change, owner=owner)
    elif entry.retries is not None:
        store.requeue(conversation_id, entry.retries, entry.turns[0], at=entry.at, change=change, owner=owner)
    elif entry.puts_first:
        store.reorder(conversation_id, _ids(entry.puts_first), change=change, owner=owner)
    else:
        drops = _ids(entry.drops)
        store.update(conversation_id, at=entry.at, turns=entry.turns, drops=drops, change=change, owner=owner)
    return None


def _handed_over(store: Store, conversation_id: str, queued: Sequence[Turn]) -> dict[str, str]:
    if not queued:
        return {}
    asked_for = {
        turn_id
        for decision in store.decisions(conversation_id)
        if decision.choice in ASKS_FOR_TURNS
        for turn_id in decision.turns
    }
    said_by = {
        message_id: store.message(conversation_id, message_id).message.speaker
        for message_id in dict.fromkeys(turn.message_id for turn in queued)
    }
    return {
        turn.id: said_by[turn.message_id].role_id
        for turn in queued
        if said_by[turn.message_id].type == "ai" and turn.id not in asked_for
    }


def _highest_turn(store: Store, conversation_id: str) -> int:
    return store.highest_turn(conversation_id)


def _ids(turns: Iterable[WaitingTurn]) -> tuple[str, ...]:
    return tuple(turn.id for turn in turns)


def _for_store(change: Change) -> StateChange:
    return StateChange(
        team_task=change.team_task,
        waits_for=change.waits_for,
        paused=change.paused,
        progress=UNSET if change.progress is UNSET else msgspec.to_builtins(change.progress),
        title=change.title,
        decision=change.decision,
    )


def undecided_turn(turn: Turn) -> UndecidedTurn:
    """Return a stored turn that waits for a decision."""
    # One that was running when we were killed is not called interrupted yet.
    state: EndState = turn.state if turn.state in ("failed", "cancelled") else "interrupted"
    return UndecidedTurn(turn=turn.waiting, state=state, failure=turn.failure)


def stored_progress(store: Store, stored: StoredConversation) -> Progress:
    """Return what is remembered. What was imported, or is of an earlier version, has not been counted yet.

    Numbers that are taken are not given again, even if none are remembered.
    """
    progress = msgspec.convert(stored.progress, Progress)
    if progress.turns_made and not progress.used:
        progress = replace(progress, used=usage_of_turns(store.turns(stored.id)))
    if stored.messages and _is_number_taken(store, stored.id, progress.message_number):
        progress = replace(progress, message_number=store.highest_number(stored.id))
    return replace(progress, turns_made=max(progress.turns_made, store.highest_turn(stored.id)))


def _is_number_taken(store: Store, conversation_id: str, last: int) -> bool:
    """Return whether the last message's number is not known, or cannot be right. Looking at all of them takes long."""
    if not last:
        return True
    try:
        store.message(conversation_id, f"msg-{last + 1}")
    except UnknownMessage:
        return False
    return True


def last_memories(store: Store, conversation_id: str) -> dict[str, Memory]:
    """Return what the sessions of all agents hold that have answered."""
    agents = {speaker.role_id for speaker in store.speakers(conversation_id) if speaker.type == "ai"}
    left = {name: store.memory(conversation_id, name) for name in agents}
    return {name: one.memory for name, one in left.items() if one is not None}


def usage_of_turns(turns: Iterable[Turn]) -> dict[str, MemberUsage]:
    """Return what every member's turns have used."""
    used: dict[str, MemberUsage] = {}
    for turn in turns:
        if turn.started_at is not None and turn.ended_at is not None:
            seconds = (turn.ended_at - turn.started_at) / 1000
            is_lost = turn.state == "interrupted" and turn.failure is None
            one = usage_of_turn(turn.usage, turn.failure, interrupted=is_lost, seconds=seconds)
            used[turn.member] = used.get(turn.member, MemberUsage()) + one
    return used
