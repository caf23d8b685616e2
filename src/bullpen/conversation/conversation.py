"""Conversation: say → route → prompt → run → say. Doors call its methods and read `watch`; they hold no logic."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from bullpen.agents.runner import to_the_end
from bullpen.context.history import History
from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import PromptReport
from bullpen.conversation.broadcast import Broadcast, Viewer
from bullpen.conversation.consequences import Entry, news_after, reply_of_an_agent, said, word_of_a_person
from bullpen.conversation.decisions import NOTHING_SAID_YET, Steering
from bullpen.conversation.events import (
    News,
    Paused,
    Quiet,
    Said,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
    Undecided,
)
from bullpen.conversation.member_agent import Seat
from bullpen.conversation.prompts import Prompts
from bullpen.conversation.resume import take_over
from bullpen.conversation.running_turn import RunningTurn, how_it_ended, milliseconds
from bullpen.conversation.state import Change, Ledger
from bullpen.errors import (
    BullpenError,
    MessageDiffers,
    NobodyToAsk,
    NothingSaid,
    StoreConflict,
    StoreError,
)
from bullpen.markers.grammar import DEFAULT_INTENT, Markers, read_markers
from bullpen.messages import ConversationMessage
from bullpen.routing.progress import cap_reached, room_for_turns, with_usage
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, StoredMessage, TurnEnd
from bullpen.team.team import Team
from bullpen.text.clean import byte_length, clean_text
from bullpen.turn_events import Event, Failed, Finished, Notice

logger = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# How long to wait before what an agent said, and could not be stored, is tried again; the last one is repeated.
STORE_RETRY_SECONDS = (0.2, 1.0, 5.0, 15.0)


class Conversation(Steering):
    """One conversation that this process owns. `open_team` makes it; closing it ends what runs."""

    def __init__(
        self, team: Team, ledger: Ledger, seats: Mapping[str, Seat], history: History, store: Store, root: Path
    ) -> None:
        super().__init__(team, ledger, history, Broadcast())
        self._seats = seats
        self._prompts = Prompts(self.context, store, ledger.conversation_id, team, root)
        self._told: Said | None = None
        self._warned: set[str] = set()
        self._was_busy = False
        self._loop: asyncio.Task[None] | None = None

    async def say(self, text: str, *, sender: str | None = None, message_id: str | None = None) -> StoredMessage:
        """Say something as a person, and return when it is stored. With an id of your own, sending it again is safe."""
        text = clean_text(text)
        if not text.strip():
            raise NothingSaid
        return await self.atomically(self._say(text, sender, message_id))

    async def watch(self) -> AsyncIterator[News]:
        """Yield everything that happens from now on, until the conversation is closed."""
        with self.viewing() as viewer:
            async for numbered in viewer:
                yield numbered.news

    def viewing(self, after: int | None = None) -> AbstractContextManager[Viewer]:
        """Watch from this moment on, or again from after a number."""
        return self._broadcast.viewing(after)

    @property
    def last_number(self) -> int:
        """The number of the latest news, for `viewing`."""
        return self._broadcast.number

    async def until_quiet(self) -> None:
        """Wait until nobody is at work and nothing can begin."""
        await self._quiet.wait()

    async def messages(
        self, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[StoredMessage]:
        """Return stored messages, oldest first: the newest ones, those before a number, or the first after one."""
        return await self._ledger.messages(after=after, before=before, limit=limit)

    async def read(
        self,
        work: Callable[Concatenate[Store, str, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call something with the store and the conversation's id, where it delays nobody."""
        return await self._ledger.read(work, *args, **kwargs)

    async def preview(self, member: str) -> AssemblerOutput:
        """Return what an agent would be given if it were asked about the last message now."""
        seat = self._seats[self._agent(member).name]
        message_id = await self._ledger.last_message_id()
        if message_id is None:
            raise NobodyToAsk(NOTHING_SAID_YET)
        turn = WaitingTurn(id="preview", member=seat.member.name, message_id=message_id, intent=DEFAULT_INTENT)
        return await self._prompt_for(turn)

    async def start(self) -> None:
        """Begin turns from now on. What an earlier process left running is interrupted; what waits needs a word."""
        for news in await self.atomically(take_over(self.team, self._ledger)):
            self._publish(news)
        self._loop = asyncio.create_task(self._begin_turns())
        self._something_changed.set()

    async def close(self) -> None:
        """Cancel what runs, and store that. Everything that waits is there when the conversation is opened again."""
        self._closing.set()
        tasks = [*self._tasks.values(), *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        await to_the_end(_all_over([*tasks, *self._changes]))
        self._broadcast.close()
        self._quiet.set()

    async def _begin_turns(self) -> None:
        """Begin every turn that may begin, whenever something has changed."""
        while True:
            await self._something_changed.wait()
            self._something_changed.clear()
            async with self._ledger.changing:
                turns = await self._next_turns()
            for turn in turns:
                self._tasks[turn.id] = asyncio.create_task(self._take_turn(turn))

    async def _take_turn(self, turn: WaitingTurn) -> None:
        """Prompt, run, say. However it goes, the turn ends, and those who watch learn how."""
        running = self.running[turn.id]
        try:
            given = await self._prompt_for(turn)
            await self._atomically(self._begin(running, given))
            self._warn_once(running)
            await self._seats[turn.member].take_turn(given, running, emit=partial(self._emit, running))
            ending = partial(self._reply, running, running.end("done"))
        except (StoreError, StoreConflict) as error:
            ending = partial(self._put_back, running, error)
        except (asyncio.CancelledError, Exception) as error:
            ending = partial(self._end, running, running.end(*how_it_ended(error)))
        try:
            await to_the_end(self._stored(ending))
        except Exception as error:
            await to_the_end(self._stored(partial(self._give_up, running, error)))
        finally:
            self._leave(running)
            del self._tasks[turn.id]
            self._something_changed.set()

    async def _say(self, text: str, sender: str | None, message_id: str | None) -> StoredMessage:
        markers = read_markers(text)
        if message_id and (stored := await self._ledger.message(message_id)):
            return self._said_before(stored, text, markers, sender)
        person = self._router.sender_of(markers, given=sender, waited_for=self._ledger.waits_for)
        build = partial(word_of_a_person, self._router, self._ledger, person, text, markers, at=milliseconds())
        return await self._record(build, message_id=message_id)

    def _said_before(self, stored: StoredMessage, text: str, markers: Markers, sender: str | None) -> StoredMessage:
        """Return a message that is sent again. Whom we wait for may be another by now; who said it is not."""
        speaker = stored.message.speaker
        person = self._router.sender_of(markers, given=sender, waited_for=speaker.role_id)
        if stored.message.content != text or person.name != speaker.role_id:
            raise MessageDiffers(stored.message.id)
        return replace(stored, already_stored=True)

    async def _reply(self, running: RunningTurn, end: TurnEnd) -> None:
        turn, agent = running.turn, self.team.member(running.turn.member)
        text = clean_text(running.reply)
        markers = read_markers(text)
        build = partial(
            reply_of_an_agent, self.team, self._router, self._ledger, agent, text, markers, turn=turn, end=end
        )
        await self._record(build, finishes=end)
        self._publish_end(running, end)

    async def _record(
        self, build: Callable[..., Entry], *, message_id: str | None = None, finishes: TurnEnd | None = None
    ) -> StoredMessage:
        """Store a message with all that it causes, in one commit, and tell everyone."""
        entry = build(message_id=message_id or self.context.next_message_id)
        try:
            stored = await self._add(entry, finishes)
        except MessageDiffers:
            if message_id is not None:
                raise
            stored = None
        if stored is None or (stored.already_stored and message_id is None):
            # Somebody has sent a message under the number that is next. It is rare, so all ids are looked at then.
            self.context.number_messages_from(1 + await self._ledger.read(_highest_number))
            entry = build(message_id=self.context.next_message_id)
            stored = await self._add(entry, finishes)
        if not stored.already_stored:
            self._tell(entry, stored.sequence, finishes)
        return stored

    async def _add(self, entry: Entry, finishes: TurnEnd | None) -> StoredMessage:
        return await self._ledger.add(
            entry.message, turns=entry.turns, drops=entry.drops, finishes=finishes, change=entry.change
        )

    def _tell(self, entry: Entry, sequence: int, finishes: TurnEnd | None) -> None:
        """Let the context know a message that is stored, and tell everyone of it and of all that it causes."""
        self._told = said(entry, sequence, finishes)
        self.context.record(entry.message)
        for news in news_after(entry):
            self._publish(news)
        if entry.route.team_task is not None:
            self._change_task(entry.route.team_task, by=entry.message.speaker.role_id)

    def _message_added(self, message: ConversationMessage) -> None:
        if self._told is not None and self._told.message.id == message.id:
            self._publish(self._told)

    async def _next_turns(self) -> tuple[WaitingTurn, ...]:
        """Take out of the queue what may begin now: nothing while something runs, during a pause, or at a cap."""
        ledger = self._ledger
        if ledger.running:
            return ()
        progress, limits = ledger.progress, self.team.limits
        group = ledger.next_group(self._people)
        if not group or ledger.paused is not None:
            self._settle_down()
            return ()
        if reason := cap_reached(progress, limits, milliseconds()):
            await self._pause_at_a_cap(reason)
            self._settle_down()
            return ()
        turns = ledger.take(group[: room_for_turns(progress, limits)])
        self.running.update({turn.id: RunningTurn(turn) for turn in turns})
        self._was_busy = True
        return turns

    async def _prompt_for(self, turn: WaitingTurn) -> AssemblerOutput:
        remark = self.progress.misses.get(turn.member, "")
        return await self._ledger.outside(self._prompts.for_turn, turn, self._seats[turn.member], remark=remark)

    async def _begin(self, running: RunningTurn, given: AssemblerOutput) -> None:
        await self._ledger.begin(running.turn, given, at=milliseconds())
        running.is_recorded = True
        size = byte_length(given.prompt) + byte_length(given.system_flag or "")
        began = TurnBegan(turn=running.turn, at=running.began_at, prompt_bytes=size, cuts=given.report.cuts)
        self._publish(began)

    async def _end(self, running: RunningTurn, end: TurnEnd) -> None:
        """Record that a turn ended without a reply, unless its reply was stored just before."""
        turn = running.turn
        if turn.id not in self._ledger.running:
            return
        if not running.is_recorded:
            if self._closing.is_set():
                self._leave(running)
                self._ledger.put_back(turn)
                return
            await self._begin(running, _nothing(self._seats[turn.member]))
        progress = with_usage(self.progress, end.usage)
        await self._ledger.end(turn, end, Change(progress=progress, waits_for=progress.person))
        self._publish_end(running, end)
        text = "" if end.failure is None else f"{end.failure.message} {end.failure.hint}".strip()
        self._publish(Undecided(turn=turn, state=end.state, text=f"{turn.member}: {text}"))

    async def _put_back(self, running: RunningTurn, error: BullpenError) -> None:
        """Let a turn wait again that could not even be recorded."""
        self._leave(running)
        self._ledger.put_back(running.turn)
        self._pause_in_memory(str(error))

    async def _give_up(self, running: RunningTurn, error: Exception) -> None:
        """Let go of a turn that cannot be recorded as it ended, so that it keeps nobody waiting."""
        try:
            await self._end(running, running.end(*how_it_ended(error)))
        except StoreError:
            raise
        except Exception:
            logger.exception("the end of a turn could not be recorded conversation=%s", self.id)
            self._leave(running)
            self._ledger.running.pop(running.turn.id, None)
            self._pause_in_memory(f"The end of turn {running.turn.id} could not be recorded: {error}")

    async def _pause_at_a_cap(self, reason: str) -> None:
        try:
            await self._pause("cap", reason)
        except StoreError as error:
            self._pause_in_memory(f"{reason} {error}")

    def _pause_in_memory(self, text: str) -> None:
        """Pause although that cannot be stored: whoever opens the conversation again finds it paused in any case."""
        self._ledger.paused = text
        self._publish(Paused(kind="trouble", text=text))

    async def _stored(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something that must be stored; if the disk is full or fails, again and again until it works."""
        for seconds in chain(STORE_RETRY_SECONDS, repeat(STORE_RETRY_SECONDS[-1])):
            is_last = self._closing.is_set()
            try:
                return await self._atomically(work())
            except StoreError as error:
                logger.warning("not stored conversation=%s error=%s", self.id, error)
                self._publish(Trouble(text=f"{error} What was said is kept here, and will be stored when that works."))
            if is_last:
                return None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)
        return None

    def _warn_once(self, running: RunningTurn) -> None:
        """Say what people should know about an agent, at its first turn."""
        warning = self._seats[running.turn.member].warning
        if warning and running.turn.member not in self._warned:
            self._warned.add(running.turn.member)
            logger.warning("%s", warning)
            self._emit(running, Notice(kind="warning", text=warning))

    def _emit(self, running: RunningTurn, event: Event) -> None:
        running.take(event)
        # How a turn ended is told when it is stored.
        if not isinstance(event, Finished | Failed):
            self._publish(TurnEvent(turn_id=running.turn.id, member=running.turn.member, event=event))

    def _leave(self, running: RunningTurn) -> None:
        """Take a turn off those at work, at the moment when its end is known: the next one may begin right after."""
        self.running.pop(running.turn.id, None)

    def _publish_end(self, running: RunningTurn, end: TurnEnd) -> None:
        self._leave(running)
        self._publish(
            TurnEnded(
                turn_id=end.turn_id,
                member=running.turn.member,
                state=end.state,
                seconds=running.seconds,
                usage=end.usage,
                failure=end.failure,
            )
        )

    def _settle_down(self) -> None:
        if self._was_busy:
            self._was_busy = False
            self._publish(Quiet(waits_for=self.waits_for))
        self._quiet.set()


def _highest_number(store: Store, conversation_id: str) -> int:
    return store.highest_number(conversation_id)


async def _all_over(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _nothing(seat: Seat) -> AssemblerOutput:
    """Return what an agent was given whose prompt could not be made."""
    report = PromptReport(agent_type=seat.spec.name, max_bytes=seat.member.max_bytes, section_bytes={})
    return AssemblerOutput(prompt="", report=report)
