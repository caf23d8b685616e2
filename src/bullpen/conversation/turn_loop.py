"""TurnLoop: prompt, run, reply. Begins every turn that may begin, and ends each one exactly once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import chain, repeat
from typing import Any

from msgspec.structs import replace

from bullpen.agents.runner import to_the_end
from bullpen.clock import milliseconds, sleep
from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import PromptReport
from bullpen.conversation import decisions
from bullpen.conversation.approvals import Approvals
from bullpen.conversation.best_of import BestOfSeveral
from bullpen.conversation.blind_rounds import reveal
from bullpen.conversation.budgets import TurnBudgets
from bullpen.conversation.consequences import agent_reply, turn_begins, turn_ends
from bullpen.conversation.entry import Entry
from bullpen.conversation.events import Paused, Quiet, Trouble, TurnEnded, TurnEvent
from bullpen.conversation.journal import Journal
from bullpen.conversation.kept_output import keeping_output
from bullpen.conversation.lost_turns import retry_if_it_says_so
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.memories import Memories, usage_of
from bullpen.conversation.patience import patiently
from bullpen.conversation.prepared_turn import PreparedTurn, SessionPlan
from bullpen.conversation.prompts import Prompts
from bullpen.conversation.remarks import remark_for
from bullpen.conversation.reply_markers import reply_markers, text_places, texts_of
from bullpen.conversation.review_loop import ReviewLoop
from bullpen.conversation.running_turn import RunningTurn, how_it_ended
from bullpen.conversation.stand_ins import StandIns
from bullpen.conversation.state import INTERRUPTED
from bullpen.conversation.summaries import Summaries
from bullpen.conversation.toolbox import Toolbox, with_notes
from bullpen.conversation.turn_agents import TurnAgents
from bullpen.conversation.turn_files import TurnFiles
from bullpen.conversation.turn_session import TurnSession
from bullpen.conversation.undecided_elsewhere import decided_elsewhere
from bullpen.errors import BullpenError, NotTheOwner, SessionLost, StoreConflict, StoreError
from bullpen.prices.lists import Prices
from bullpen.routing.blind import blind_of
from bullpen.routing.budgets import members_spent, that_fit
from bullpen.routing.obstacles import may_begin
from bullpen.routing.progress import cap_reached, room_for_turns
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.reviews import review_of
from bullpen.routing.rounds import hidden_from, is_judges, round_of
from bullpen.routing.router import Router
from bullpen.store.base import EndState, PoolOrder, TurnEnd
from bullpen.team.team import Team
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event, Failed, Finished, Notice, Usage, UsageSoFar

logger = logging.getLogger(__name__)

# How long to wait before storing a reply again that could not be stored; the last one is repeated.
LOOK_ELSEWHERE_MILLISECONDS = 1_000
"""How often it is looked whether people have decided in another conversation."""
STORE_RETRY_SECONDS = (0.2, 1.0, 5.0, 15.0)


class TurnLoop:
    """Runs the turns of one conversation."""

    def __init__(
        self,
        team: Team,
        router: Router,
        journal: Journal,
        agents: TurnAgents,
        prompts: Prompts,
        memories: Memories,
        workspaces: Mapping[str, str],
        files: TurnFiles,
        best_of: BestOfSeveral,
        reviews: ReviewLoop,
        summaries: Summaries,
        approvals: Approvals,
    ) -> None:
        self.running: dict[str, RunningTurn] = {}
        """The running turns, by their ids."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._team = team
        self._router = router
        self._journal = journal
        self._state = journal.state
        self._agents = agents
        self._prompts = prompts
        self._memories = memories
        self._files = files
        self._best_of = best_of
        self._reviews = reviews
        self._summaries = summaries
        self._approvals = approvals
        self._prices = Prices(team.prices)
        self._stand_ins = StandIns(team, journal, agents, files.has_changed)
        self.budgets = TurnBudgets(team, journal, self.running, self.tasks)
        """What the turns may still use."""
        self._alarm: asyncio.Task[None] | None = None
        self._toolbox = Toolbox(team, router, journal, prompts, approvals, self.running)
        self._workspaces = workspaces
        self._people = frozenset(person.name for person in team.people)
        self._asked_elsewhere = ""
        """Why this process paused: what another conversation waits for. A pause of before needs a person."""
        self._was_busy = False
        self._warned: set[str] = set()
        journal.on_lost = self._stop

    async def run(self) -> None:
        """Begin every turn that may begin, whenever something has changed."""
        try:
            while True:
                await self._journal.changed.wait()
                self._journal.changed.clear()
                await self._begin_turns()
        finally:
            self._wake_at(0)

    async def _begin_turns(self) -> None:
        await self._files.own.marks.look()
        async with self._journal.lock:
            await self._files.programs.ask()
            await self._best_of.advance()
            await self._reviews.advance()
            await self._summaries.advance()
            await reveal(self._journal, self._team)
            turns = await self._next_turns()
        for turn in turns:
            self.tasks[turn.id] = asyncio.create_task(self._take_turn(turn))

    async def prompt_for(self, turn: WaitingTurn) -> AssemblerOutput:
        """Return the prompt that a turn would be given now."""
        agent, progress = self._agents.of(turn), self._state.progress
        prepared = await self._state.in_store(lambda: self._prepared(turn, self._memories.plan(agent, progress)))
        return prepared.output

    def _prepared(self, turn: WaitingTurn, plan: SessionPlan | None) -> PreparedTurn:
        """Return what an agent is given for a turn. Reads the store and files."""
        progress, agent = self._state.progress, self._agents.of(turn)
        found = round_of(progress.rounds, turn.id)
        if found is not None and is_judges(progress.rounds, turn.id):
            return self._prompts.for_judge(turn, agent, found[1], progress.summaries)
        if (asked := progress.summing.get(turn.id)) is not None:
            return self._prompts.for_summary(turn, agent, asked)
        if (blind := blind_of(progress.blind, turn)) is not None:
            return self._prompts.for_blind(turn, agent, blind, progress.summaries)
        remark = remark_for(turn, self._team, progress, self._memories, plan, is_one_of_several=found is not None)
        hidden = hidden_from(progress.rounds, turn.member)
        review = review_of(progress.reviews, turn.id)
        return self._prompts.for_turn(
            turn, agent, plan=plan, remark=remark, hidden=hidden, review=review, summaries=progress.summaries
        )

    async def _next_turns(self) -> tuple[WaitingTurn, ...]:
        """Take the turns out of the queue that may begin now, beside those that run: none in a pause, or at a limit."""
        state, limits = self._state, self._team.limits
        if state.progress.programs or self._files.has_last_looks:
            # Settings and hooks that a turn has written would count for the next agent, even if it may only read.
            self._become_quiet()
            return ()
        now = milliseconds()
        asleep, uses = self._stand_ins.asleep(now), await self.budgets.look(now)
        is_asked_elsewhere = state.paused is not None and state.paused == self._asked_elsewhere
        looks_again = [now + LOOK_ELSEWHERE_MILLISECONDS] if is_asked_elsewhere else []
        self._wake_at(min([*asleep.values(), *self.budgets.wakes_at(uses, now), *looks_again], default=0))
        situation = state.situation(self._people, self._workspaces, asleep, members_spent(self._team, uses))
        ready = that_fit(may_begin(state.queue.waiting, situation), uses)
        if state.paused is not None and not (is_asked_elsewhere and ready and await self._is_decided_elsewhere(ready)):
            ready = ()
        if not ready:
            # What sleeps begins by itself: nobody is told that all is done.
            if state.paused is not None or not any(turn.member in asleep for turn in state.queue.waiting):
                self._become_quiet()
            return ()
        if reason := cap_reached(state.progress, limits, now):
            await self._pause(decisions.pause("cap", reason, at=now), reason)
            return ()
        try:
            elsewhere = await self._files.undecided_elsewhere(ready)
        except StoreError as error:
            self._pause_in_memory(str(error))
            self._become_quiet()
            return ()
        if elsewhere is not None:
            self._asked_elsewhere = elsewhere.text
            await self._pause(elsewhere.entry(state.progress, at=now), elsewhere.text)
            self._wake_at(now + LOOK_ELSEWHERE_MILLISECONDS)
            return ()
        uncounted = sum(not running.is_recorded for running in self.running.values())
        turns = state.begin(ready[: room_for_turns(state.progress, limits, uncounted)])
        self.running.update({turn.id: RunningTurn(turn) for turn in turns})
        for turn in turns:
            self.running[turn.id].remark = self._stand_ins.choose(turn, now)
        self._was_busy = True
        return turns

    async def _is_decided_elsewhere(self, turns: Sequence[WaitingTurn]) -> bool:
        """End a pause if people have decided meanwhile in the other conversation; return whether they have."""
        try:
            if await self._files.undecided_elsewhere(turns) is not None:
                return False
            await self._journal.commit(decided_elsewhere(self._state.progress, at=milliseconds()))
        except (StoreError, StoreConflict):
            # It is looked again soon.
            return False
        return True

    def _wake_at(self, moment: int) -> None:
        """Look again when a program can be used again that a turn waits for."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if moment:
            seconds = max(0.0, (moment - milliseconds()) / 1000) + 0.01
            self._alarm = asyncio.create_task(self._wake_after(seconds))

    async def _wake_after(self, seconds: float) -> None:
        await sleep(seconds)
        self._journal.changed.set()

    def adopt(self, turns: tuple[WaitingTurn, ...]) -> None:
        """Follow turns to their ends that run on workers, and that began under another owner."""
        for turn in turns:
            running = self.running[turn.id] = RunningTurn(turn)
            running.is_recorded = self._was_busy = True
            self._agents.choose(turn, self._agents.chosen(turn))
            self.tasks[turn.id] = asyncio.create_task(self._take_turn(turn, is_adopted=True))

    def leave_what_continues(self) -> None:
        """Do not cancel turns that run on workers, though nobody follows them here any more."""
        for running in self.running.values():
            running.may_be_left = self._agents.of(running.turn).is_elsewhere

    async def _take_turn(self, turn: WaitingTurn, *, is_adopted: bool = False) -> None:
        """Prompt, run, reply. The turn always ends, and viewers get an event that says how."""
        running = self.running[turn.id]
        agent, is_apart = self._agents.of(turn), self._agents.has_no_session(turn)
        session = TurnSession(self._state, self._memories, agent, is_apart=is_apart)
        try:
            if is_adopted:
                await self._adopt_and_run(running, session)
            else:
                await self._begin_and_run(running, session)
            # Before the reply is stored: the member's next turn may begin at once.
            session.leave()
            ending, is_checked = partial(self._reply, running, running.end("done")), True
        except (StoreError, StoreConflict) as error:
            ending, is_checked = partial(self._put_back, running, error), False
        except (asyncio.CancelledError, Exception) as error:
            end = running.end(*self._how_it_ended(running, error))
            # Who cancels a turn does not want a program to begin because of it.
            ending, is_checked = partial(self._end_badly, running, end, session), end.state == "failed"
        if running.may_be_left and not running.is_recorded:
            # The commit that begins it does not end when this task is cancelled, and places its order.
            with suppress(asyncio.CancelledError):
                await to_the_end(self._journal.shielded(_nothing))
        if running.is_left or (agent.member.pool and self._journal.lost is not None):
            self._files.leave(turn)
        else:
            self._files.after(turn, has_reply=ending.func == self._reply, is_checked=is_checked)
        try:
            await to_the_end(self._stored(ending))
        except Exception as error:
            await to_the_end(self._stored(partial(self._give_up, running, error)))
        finally:
            session.leave()
            self._forget(running)
            if running.is_end_stored:
                self._agents.of(turn).settled(turn)
            self._agents.forget(turn)
            self._files.own.stored(turn.id)
            self._files.checks.stored(turn.id)
            del self.tasks[turn.id]
            self._journal.changed.set()

    async def _begin_and_run(self, running: RunningTurn, session: TurnSession) -> None:
        turn, agent = running.turn, self._agents.of(running.turn)
        await self._look_at_files(running)
        if not agent.member.pool:
            prepared = await session.enter(self._state.progress, partial(self._prepared, turn))
            await self._journal.shielded(lambda: self._begin(running, prepared.output))
            # It has begun, so it cannot be put back into the queue any more.
            await self._stored(partial(self._files.begin, turn), "The turn begins as soon as that works.")
            if self._journal.lost is not None:
                # Nothing runs here for a conversation that another process owns now.
                raise self._journal.lost
        else:
            enter = partial(session.enter, self._state.progress, partial(self._prepared, turn))
            prepared = await patiently(self._journal, enter)
            # It is ordered in the commit that begins it: its next owner must know that it works there.
            await self._files.begin(turn)
            begin = partial(self._begin, running, prepared.output, agent.order_for(turn, prepared))
            await patiently(self._journal, partial(self._journal.shielded, begin))
        async with keeping_output(self._journal, running), self._toolbox.open_for(running, agent):
            await self._run(running, prepared, session)

    async def _adopt_and_run(self, running: RunningTurn, session: TurnSession) -> None:
        try:
            await self._approvals.adopt(running)
            self._toolbox.adopt(running, self._agents.of(running.turn))
            prepared = await self._agents.of(running.turn).adopt(running, emit=partial(self._heard, running))
            session.adopt(prepared)
            await self._run(running, prepared, session)
        finally:
            await to_the_end(self._approvals.close(running))

    async def _look_at_files(self, running: RunningTurn) -> None:
        """Look at the turn's folder. If it is to be shown what another turn changed or broke, that must be known."""
        turn = running.turn
        if self._files.is_looking and await self._state.in_store(self._prompts.wants_diff, turn):
            await self._files.finish()
        if self._files.checks.is_checking and await self._state.in_store(self._prompts.wants_checks, turn):
            running.doing = "waiting for the checks"
            await self._files.checks.finish()
        await self._agents.of(turn).until_reachable(lambda text: self._journal.publish(Trouble(text=text)))
        await self._files.look(turn)

    async def _run(self, running: RunningTurn, prepared: PreparedTurn, session: TurnSession) -> None:
        """Run the agent. If it cannot continue in its session, and has done nothing, it begins a new one."""
        agent = self._agents.of(running.turn)

        def emit(event: Event) -> None:
            session.on_event(event)
            self._heard(running, event)

        running.ask = partial(self._approvals.ask, agent.member, running)
        try:
            running.used_before = session.used_before
            async with self._storing_what_was_given(running, prepared):
                reply = await agent.take_turn(prepared.output, running, emit=emit)
        except SessionLost as error:
            if running.has_begun or agent.is_elsewhere:
                raise
            prepared = await session.begin_again(error.event.sentence, partial(self._prepared, running.turn))
            given = prepared.output
            await self._journal.shielded(lambda: self._state.give_again(running.turn.id, given))
            running.used_before = None
            self._notify_of_session(running, prepared.output)
            reply = await agent.take_turn(given, running, emit=emit)
        if running.why_again:
            prepared = prepared.begun_again(running.why_again)
            session.adopt(prepared)
        running.memory = await session.after(prepared, reply, running.reported_usage, at=milliseconds())

    @asynccontextmanager
    async def _storing_what_was_given(self, running: RunningTurn, prepared: PreparedTurn) -> AsyncIterator[None]:
        """Store what an agent elsewhere was really given as soon as its worker has told it, however the turn ends."""
        if prepared.fresh is None:
            yield
            return
        storing = asyncio.create_task(self._store_what_was_given(running, prepared))
        try:
            yield
        finally:
            if not running.why_again or running.is_left:
                storing.cancel()
            await to_the_end(_done(storing))

    async def _store_what_was_given(self, running: RunningTurn, prepared: PreparedTurn) -> None:
        await running.knows_session.wait()
        given = prepared.begun_again(running.why_again).output
        self._notify_of_session(running, given)
        try:
            await self._stored(lambda: self._state.give_again(running.turn.id, given))
        except NotTheOwner as error:
            self._journal.lose(error)

    async def _begin(self, running: RunningTurn, given: AssemblerOutput, order: PoolOrder | None = None) -> None:
        await self._stand_ins.announce(running)
        by = self._agents.stand_in(running.turn)
        if by:
            running.usage = Usage(agent=self._agents.of(running.turn).member.program)
            given = replace(given, report=replace(given.report, stand_in=by))
        entry = turn_begins(
            *(self._state, running.turn, given), began_at=running.began_at, at=milliseconds(), order=order, by=by
        )
        await self._journal.commit(entry)
        running.is_recorded = True
        self._warn_once(running)
        self._notify_of_session(running, given)

    async def _reply(self, running: RunningTurn, end: TurnEnd) -> None:
        agent = self._team.member(running.turn.member)
        texts = texts_of(running.reply, running.texts_at)
        if agent.reply == "last":
            texts = texts[-1:]
        markers, notes = reply_markers(texts)
        text = with_notes("".join(texts), markers, running)
        build = partial(
            agent_reply,
            *(self._team, self._router, self._state, agent, text),
            self._toolbox.with_calls(markers, running),
            turn=running.turn,
            end=end,
            seconds=running.seconds,
            asked=running.asked.seconds,
            notes=(*notes, *self._toolbox.not_followed(markers, running)),
            doubt=running.doubt,
            extra=text_places(text, texts),
        )
        stored = await self._journal.commit_message(build)
        running.is_end_stored = True
        self._files.own.replied(running.turn.id, stored.message.id)
        self._files.checks.replied(running.turn.id, stored.message.id)
        await self._stand_ins.note_quota(running)
        self._forget(running)

    async def _end_badly(self, running: RunningTurn, end: TurnEnd, session: TurnSession) -> None:
        """Take what the turn left out of its session, and record its end."""
        await session.put_back()
        await self._end(running, end)

    def _how_it_ended(self, running: RunningTurn, error: BaseException) -> tuple[EndState, Failed | None]:
        """Return the state of a turn after an error. One that nobody has cancelled was interrupted by closing."""
        state, failure = how_it_ended(error)
        is_wanted = running.is_cancelled or running.why_ended or not self._journal.closing.is_set()
        if state == "cancelled" and not is_wanted:
            return "interrupted", Failed(kind="cancelled", message=INTERRUPTED)
        return state, failure

    async def _end(self, running: RunningTurn, end: TurnEnd) -> None:
        """Record that a turn ended without a reply, unless its reply was stored just before."""
        turn = running.turn
        if turn.id not in self._state.running:
            return
        if self._journal.lost is not None or running.is_left:
            self._leave(running)
            return
        if not running.is_recorded:
            if self._journal.closing.is_set():
                self._forget(running)
                self._state.put_back(turn)
                return
            await self._begin(running, _no_prompt(self._agents.of(turn)))
        is_wanted = running.is_cancelled and not running.why_ended
        times = {"seconds": running.seconds, "asked": running.asked.seconds}
        await self._journal.commit(turn_ends(self._state, turn, end, **times, is_wanted=is_wanted))
        running.is_end_stored = True
        await self._stand_ins.note_quota(running)
        self._forget(running)
        if not is_wanted:
            await retry_if_it_says_so(self._journal, self._team.limits, turn, end)
            await self._stand_ins.after(running, end.failure)

    def _leave(self, running: RunningTurn) -> None:
        """Forget a turn that can no longer be recorded here: its conversation has another owner, or will have one."""
        self._forget(running)
        del self._state.running[running.turn.id]
        ended = TurnEnded(
            turn_id=running.turn.id, member=running.turn.member, state="interrupted", seconds=running.seconds
        )
        self._journal.publish(ended)

    def _stop(self) -> None:
        """Stop all running turns and their agents; those on workers are another owner's now."""
        self.leave_what_continues()
        for task in self.tasks.values():
            task.cancel()
        self._files.checks.stop()

    async def _put_back(self, running: RunningTurn, error: BullpenError) -> None:
        """Put a turn back into the queue that could not be recorded."""
        if self._journal.lost is not None:
            self._leave(running)
            return
        self._forget(running)
        self._state.put_back(running.turn)
        self._pause_in_memory(str(error))

    async def _give_up(self, running: RunningTurn, error: Exception) -> None:
        """Give up a turn whose end cannot be recorded, so that nobody waits for it."""
        try:
            await self._end(running, running.end(*self._how_it_ended(running, error)))
        except StoreError:
            raise
        except Exception:
            logger.exception("the end of a turn could not be recorded conversation=%s", self._state.conversation_id)
            self._forget(running)
            self._state.running.pop(running.turn.id, None)
            self._pause_in_memory(f"The end of turn {running.turn.id} could not be recorded: {error}")

    async def _stored(
        self,
        work: Callable[[], Coroutine[Any, Any, None]],
        meanwhile: str = "The reply is kept in memory until it can be stored.",
    ) -> None:
        """Store something; if the disk is full or fails, try again until it works."""
        closing = self._journal.closing
        for seconds in chain(STORE_RETRY_SECONDS, repeat(STORE_RETRY_SECONDS[-1])):
            is_last = closing.is_set()
            try:
                return await self._journal.shielded(work)
            except StoreError as error:
                logger.warning("not stored conversation=%s error=%s", self._state.conversation_id, error)
                if self._journal.lost is not None:
                    # It may be stored already: who opens the conversation next sees what is.
                    return None
                self._journal.publish(Trouble(text=f"{error} {meanwhile}"))
            if is_last:
                return None
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), seconds)
        return None

    async def _pause(self, entry: Entry, reason: str) -> None:
        try:
            await self._journal.commit(entry)
        except (StoreError, StoreConflict) as error:
            self._pause_in_memory(f"{reason} {error}")
        self._become_quiet()

    def _pause_in_memory(self, text: str) -> None:
        """Pause although that cannot be stored: a conversation that is opened again is paused anyway."""
        self._state.paused = text
        self._journal.publish(Paused(kind="trouble", text=text))

    def _become_quiet(self) -> None:
        """Say that nothing runs and nothing can begin, if so."""
        if self._state.running or self._files.is_looking or self._files.checks.is_checking:
            # What a turn has changed that has ended is about to be told, and whether it is broken.
            return
        if self._was_busy:
            self._was_busy = False
            self._journal.publish(Quiet(waits_for=self._state.waits_for))
        self._journal.quiet.set()

    def _heard(self, running: RunningTurn, event: Event) -> None:
        self._files.on_event(running.turn, event)
        self._emit(running, event)

    def _emit(self, running: RunningTurn, event: Event) -> None:
        if isinstance(event, Usage):
            running.reported_usage = event
            event = UsageSoFar(usage_of(event, running.used_before))
        if isinstance(event, UsageSoFar):
            named = self._agents.of(running.turn).member.model or ""
            event = self._prices.estimated(event.usage, running.model or named, named)
            event = replace(event, agent="" if running.usage is None else running.usage.agent)
        self.budgets.heard(running, event)
        running.on_event(event)
        # How a turn ended is published when it is stored, and a question when a person is asked.
        if not isinstance(event, Finished | Failed | ApprovalAsked | ApprovalOver):
            turn = running.turn
            self._journal.publish(TurnEvent(turn_id=turn.id, member=turn.member, event=event))

    def _notify_of_session(self, running: RunningTurn, given: AssemblerOutput) -> None:
        """Publish why an agent's session does not continue."""
        session = given.report.session
        if session is not None and session.reason:
            self._emit(running, Notice(kind="session", text=session.sentence))

    def _warn_once(self, running: RunningTurn) -> None:
        """Publish a warning about an agent type, at its first turn."""
        warning = self._agents.of(running.turn).warning
        if warning and warning not in self._warned:
            self._warned.add(warning)
            logger.warning("%s", warning)
            self._emit(running, Notice(kind="warning", text=warning))

    def _forget(self, running: RunningTurn) -> None:
        """Remove a turn from the running ones as soon as its end is known: the next one may begin right after."""
        self.running.pop(running.turn.id, None)


def _no_prompt(agent: MemberAgent) -> AssemblerOutput:
    """Return an empty prompt, for an agent whose prompt could not be built."""
    report = PromptReport(agent_type=agent.spec.name, max_bytes=agent.member.max_bytes, section_bytes={})
    return AssemblerOutput(prompt="", report=report)


async def _nothing() -> None:
    """Change nothing: awaiting this waits for all changes before it."""


async def _done(task: asyncio.Task[None]) -> None:
    with suppress(asyncio.CancelledError):
        await task
