"""TurnBudgets: what turns may still use. At a cap they end, or do not begin, and people are asked."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from bullpen.clock import milliseconds
from bullpen.context.history import message_number
from bullpen.conversation.budget_events import BudgetRaised, BudgetReached
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Said
from bullpen.conversation.journal import Journal
from bullpen.conversation.returned_checks import SYSTEM
from bullpen.conversation.running_turn import RunningTurn
from bullpen.conversation.state import ConversationState
from bullpen.errors import NothingToRaise, StoreConflict, StoreError
from bullpen.messages import ConversationMessage, Routing
from bullpen.routing.budgets import (
    NOTICE_SHARE,
    BudgetUse,
    asked_about,
    budget_uses,
    members_waiting,
    to_raise,
    untold,
    with_raised,
    with_told,
)
from bullpen.routing.progress import MemberUsage, counting_again, usage_of_turn
from bullpen.team.team import Budget, Team
from bullpen.turn_events import Event, Usage

logger = logging.getLogger(__name__)

LAST_REPORT_MS = 10_000
"""CLIs say at a turn's end what it has used: one that has just done so is given time to end by itself."""
LOOK_MS = 50
LOOK_WHILE_ASKING_MS = 1_000


class TurnBudgets:
    """The budgets of one conversation. If its team has none, nothing is done."""

    def __init__(
        self,
        team: Team,
        journal: Journal,
        running: Mapping[str, RunningTurn],
        tasks: Mapping[str, "asyncio.Task[None]"],
    ) -> None:
        self._team = team
        self._journal = journal
        self._running = running
        self._tasks = tasks
        self._is_needed = any(one != Budget() for one in (team.budget, *(agent.budget for agent in team.agents)))

    @property
    def uses(self) -> tuple[BudgetUse, ...]:
        """How much of every budget is used, with what running turns have used so far."""
        now: dict[str, MemberUsage] = {}
        for running in self._running.values() if self._is_needed else ():
            # Also what a stand-in uses: the budget is the role's.
            name = running.turn.member
            now[name] = now.get(name, MemberUsage()) + usage_of_turn(running.usage, seconds=running.worked)
        return budget_uses(self._team, self._journal.state.progress, now) if self._is_needed else ()

    def heard(self, running: RunningTurn, event: Event) -> None:
        """Look again when a turn says what it has used, or continues after that."""
        if self._is_needed and (running.reported_at or isinstance(event, Usage)):
            self._journal.changed.set()

    async def look(self, now: int) -> tuple[BudgetUse, ...]:
        """End turns for which nothing is left, and tell people; return what is used. The lock must be held."""
        uses = self.uses
        self._end_turns(uses, now)
        if uses and self._journal.lost is None and not self._journal.closing.is_set():
            try:
                await self._tell(uses, now)
                await self._ask(uses)
            except (StoreError, StoreConflict) as error:
                logger.warning("not stored conversation=%s error=%s", self._journal.state.conversation_id, error)
        return uses

    def wakes_at(self, uses: Iterable[BudgetUse], now: int) -> Iterator[int]:
        """Yield the moments at which to look again although nothing is heard until then."""
        for running in self._running.values():
            if running.reported_at + LAST_REPORT_MS > now:
                yield running.reported_at + LAST_REPORT_MS
        for one in uses:
            turns = [running for running in self._running.values() if one.is_of(running.turn.member)]
            if one.kind != "minutes" or not turns:
                continue
            working = sum(not running.asked.is_asking for running in turns)
            left = [share * one.cap - one.used for share in (NOTICE_SHARE, 1.0) if share * one.cap > one.used]
            if left and working:
                yield now + max(LOOK_MS, round(60_000 * min(left) / working))
            elif left:
                yield now + LOOK_WHILE_ASKING_MS

    def _end_turns(self, uses: Sequence[BudgetUse], now: int) -> None:
        """Cancel the turns for which nothing is left, but not one that is about to end."""
        for running in self._running.values():
            reached = next((one for one in uses if one.ends_turns and one.is_of(running.turn.member)), None)
            task = self._tasks.get(running.turn.id)
            is_ending = running.why_ended or running.reply or _may_be_ending(running, now)
            if reached is not None and task is not None and not is_ending:
                logger.info("turn ended at a budget turn=%s budget=%s", running.turn.id, reached.key)
                running.why_ended = f"The turn was cancelled. {reached.sentence}"
                task.cancel()

    async def _tell(self, uses: Sequence[BudgetUse], now: int) -> None:
        """Tell people of what most is used: after the reply of a turn that is about to end, not before."""
        progress = self._journal.state.progress
        later = [running for running in self._running.values() if _may_be_ending(running, now)]
        known = [one for one in uses if not any(one.is_of(running.turn.member) for running in later)]
        ended = [one for one in budget_uses(self._team, progress) if one.kind == "turns"]
        if fresh := untold([*ended, *(one for one in known if one.kind != "turns")], progress):
            await self._journal.commit_message(partial(_notice, self._journal.state, fresh, at=milliseconds()))

    async def _ask(self, uses: Sequence[BudgetUse]) -> None:
        """Ask people about budgets that are in the way, or no longer about those that are not."""
        state = self._journal.state
        ended = (turn.turn for turn in state.undecided.values())
        asked = asked_about(uses, members_waiting(self._team, [*state.queue.waiting, *ended]))
        owners = tuple(dict.fromkeys(one.member for one in asked))
        if owners != state.progress.spent:
            new = [owner for owner in owners if owner not in state.progress.spent]
            events = tuple(BudgetReached(member=owner, text=sentences(asked, owner)) for owner in new)
            change = Change(progress=replace(state.progress, spent=owners))
            await self._journal.commit(Entry(at=milliseconds(), change=change, events=events))


def _may_be_ending(running: RunningTurn, now: int) -> bool:
    return now - running.reported_at < LAST_REPORT_MS


def sentences(uses: Iterable[BudgetUse], owner: str) -> str:
    """Return how much is used of the budgets of a member, or of the conversation's."""
    return " ".join(one.sentence for one in uses if one.member == owner)


def raise_budgets(
    state: ConversationState, uses: Sequence[BudgetUse], owners: Collection[str] | None, *, always: bool, at: int
) -> Entry:
    """Give as much again as the team file gives, or let a budget hold no more in this conversation."""
    meant = to_raise(uses, owners)
    if not meant:
        raise NothingToRaise(next(iter(owners or ()), None))
    raised = {one.member for one in meant}
    progress = counting_again(with_raised(state.progress, meant, always=always), at)
    spent = tuple(owner for owner in progress.spent if owner not in raised)
    return Entry(
        at=at,
        change=Change(progress=replace(progress, spent=spent)),
        events=tuple(BudgetRaised(member=owner, text=_raised(meant, owner, always=always)) for owner in sorted(raised)),
    )


def _raised(uses: Iterable[BudgetUse], owner: str, *, always: bool) -> str:
    whose = f"The budget of {owner}" if owner else "The conversation's budget"
    if always:
        return f"{whose} holds no more in this conversation."
    more = " and ".join(one.in_words(one.amount) for one in uses if one.member == owner)
    return f"{whose} was raised: {more} more."


def _notice(state: ConversationState, uses: Sequence[BudgetUse], *, message_id: str, at: int) -> Entry:
    """Return a message of ours that says how much is used: it asks nobody."""
    content = " ".join(one.sentence for one in uses)
    number = max(state.progress.message_number, message_number(message_id))
    progress = replace(with_told(state.progress, uses), message_number=number)
    message = ConversationMessage(id=message_id, content=content, speaker=SYSTEM, timestamp=at, routing=Routing())
    said = Said(sequence=state.messages + 1, message=message)
    return Entry(at=at, message=message, said=said, change=Change(progress=progress))
