"""Summaries: people ask for them and drop them, and when an agent is not shown too much, one is asked for by itself."""

import logging
from collections.abc import Callable
from functools import partial

from bullpen.clock import milliseconds
from bullpen.conversation import decisions
from bullpen.conversation.consequences import person_message
from bullpen.conversation.entry import Entry
from bullpen.conversation.journal import Journal
from bullpen.conversation.session_rules import has_own_memory
from bullpen.conversation.summary_entries import asked_by_itself, asked_in, dropped
from bullpen.conversation.summary_prompts import not_shown, planned, sizes_after
from bullpen.conversation.turn_agents import TurnAgents
from bullpen.errors import BullpenError, NothingToSumUp, StoreConflict, StoreError
from bullpen.markers.grammar import Markers
from bullpen.routing.budgets import budget_uses, reached_by
from bullpen.routing.progress import cap_reached
from bullpen.routing.rests import asleep
from bullpen.routing.router import Router
from bullpen.team.team import Member, Team
from bullpen.text.numbers import counted, size

logger = logging.getLogger(__name__)

NOT_FOLLOWED = "[SUM UP] asks one agent for a summary, so hand-overs in the same message are not followed."


class Summaries:
    """The summaries of one conversation."""

    def __init__(self, team: Team, router: Router, journal: Journal, agents: TurnAgents) -> None:
        self._team = team
        self._router = router
        self._journal = journal
        self._state = journal.state
        self._agents = agents
        self._sizes: list[int] = []
        """The bytes of the messages after the last one for which a summary was asked."""
        self._sizes_after = -1
        self._seen_to = 0
        """What was said before the conversation was opened: that alone asks nobody."""

    def wait_for_more(self) -> None:
        """Ask for nothing by itself before something is said: who opens a conversation has not seen it yet."""
        self._seen_to = self._state.messages

    async def asking(self, person: Member, text: str, markers: Markers) -> Callable[..., Entry]:
        """Return what builds the entry of a person's [SUM UP], or raise NothingToSumUp. The lock is held."""
        if turn := next(iter(self._state.progress.summing), None):
            raise NothingToSumUp(f"A summary is being written already, in turn {turn}.{self._how_to_go_on(turn)}")
        asked_markers = self._router.with_summarizer(markers)
        member = self._router.member(asked_markers.addressees[0])
        asked = await self._state.read(planned, member, self._team.agents, self._state.progress)
        if asked is None:
            has = counted(self._state.messages, "message")
            raise NothingToSumUp(
                f"There is nothing to sum up: agents are shown all {has}, or have a summary of the rest."
            )
        at = milliseconds()

        def build(message_id: str) -> Entry:
            entry = person_message(
                *(self._router, self._state, person, text, asked_markers),
                message_id=message_id,
                at=at,
                has_mentions=False,
            )
            return asked_in(self._state, entry, asked, member.name, (NOT_FOLLOWED,) if markers.next else ())

        return build

    async def drop(self, number: int | None, person: str) -> None:
        """Take a summary out of all prompts from now on. The message stays."""
        at = milliseconds()

        def build(message_id: str) -> Entry:
            entry = dropped(self._state, person, number, message_id=message_id, at=at)
            return decisions.decided_by(person, "drop-summary", entry, at=at)

        await self._journal.alone(lambda: self._journal.commit_message(build))

    async def advance(self) -> None:
        """Ask for a summary if the team file says when, and some agent is not shown that much. The lock is held."""
        most, progress = self._team.summaries.after_bytes, self._state.progress
        if most is None or self._state.paused is not None or progress.summing or not self._has_new_messages:
            return
        if self._state.messages <= self._seen_to:
            return
        try:
            await self._count()
            readers = [agent.member for agent in self._agents.of_members.values() if not has_own_memory(agent)]
            missed = {member.name: not_shown(self._sizes, member) for member in readers if member.visibility == "all"}
            name = max(missed, key=missed.__getitem__, default="")
            if name and missed[name] > most:
                await self._ask(name, missed[name], most)
        except (StoreError, StoreConflict) as error:
            # It is tried again when something is said.
            logger.warning("no summary asked for conversation=%s error=%s", self._state.conversation_id, error)

    @property
    def _has_new_messages(self) -> bool:
        is_same = self._sizes_after == self._state.progress.summed_to
        return not is_same or self._sizes_after + len(self._sizes) < self._state.messages

    async def _count(self) -> None:
        after = self._state.progress.summed_to
        if after != self._sizes_after:
            self._sizes, self._sizes_after = [], after
        self._sizes += await self._state.read(sizes_after, after + len(self._sizes))

    async def _ask(self, name: str, missed: int, most: int) -> None:
        try:
            summarizer = self._router.summarizer(None)
        except BullpenError as error:
            logger.warning("nobody can sum up conversation=%s error=%s", self._state.conversation_id, error)
            return
        asked = await self._state.read(planned, summarizer, self._team.agents, self._state.progress)
        if asked is None or asked.last <= self._state.progress.summed_to or not self._may_begin(summarizer):
            return
        why = f"{name} is not shown {size(missed)} of messages, which is more than {size(most)} (after_bytes)."
        build = partial(asked_by_itself, self._state, summarizer.name, asked, why, at=milliseconds())
        await self._journal.commit_message(build)

    def _may_begin(self, summarizer: Member) -> bool:
        """Return whether nothing keeps a turn from beginning: nobody is to wait for, or decide about, a summary."""
        progress, now = self._state.progress, milliseconds()
        is_spent = reached_by(budget_uses(self._team, progress), summarizer.name) is not None
        is_asleep = summarizer.name in asleep(self._team, progress.rests, now)
        return not is_spent and not is_asleep and cap_reached(progress, self._team.limits, now) is None

    def _how_to_go_on(self, turn: str) -> str:
        answers = "/retry, /hand NAME or /skip" if len(self._team.agents) > 1 else "/retry or /skip"
        return f" It needs a decision: {answers}." if turn in self._state.undecided else ""
