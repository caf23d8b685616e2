"""What follows when a program cannot be used: another one takes the turn, or it waits until one can be."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from bullpen.agents.reset_times import reset_moment
from bullpen.agents.sign_in import why_not_ready
from bullpen.agents.spec import SignInProbe
from bullpen.clock import milliseconds
from bullpen.context.history import message_number
from bullpen.conversation import decisions
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Said
from bullpen.conversation.journal import Journal
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.returned_checks import SYSTEM
from bullpen.conversation.running_turn import RunningTurn
from bullpen.conversation.state import ConversationState
from bullpen.conversation.turn_agents import TurnAgents, may_change_files
from bullpen.messages import ConversationMessage, Routing
from bullpen.routing.progress import Progress, without_turn
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rests import (
    BACKOFF_SECONDS,
    LEAST_SECONDS,
    REST_SECONDS,
    WHY,
    WHY_OF,
    QuotaUse,
    Rest,
    asleep,
    awake,
    wakes,
)
from bullpen.routing.stand_in_line import why_spared
from bullpen.team.stand_ins import program_key
from bullpen.team.team import Member, Team
from bullpen.text.numbers import moment
from bullpen.turn_events import Failed, FailureKind

MOST_PROBE_SECONDS = 5.0
"""For so long it is asked whether stand-ins are signed in. Who does not answer is tried."""
HasChanged = Callable[[str], Coroutine[Any, Any, bool]]
"""Whether a turn that has ended changed files, or nobody can say that it did not."""


class StandIns:
    """Who takes the turns of a team's members while their own programs cannot be used. Without any, nothing is done."""

    def __init__(self, team: Team, journal: Journal, agents: TurnAgents, has_changed: HasChanged) -> None:
        self._team = team
        self._journal = journal
        self._agents = agents
        self._has_changed = has_changed
        self._sparing = [member for member in team.agents if member.stand_in_at is not None]
        self._is_needed = bool(team.limits.overload_retries) or any(member.stand_in for member in team.agents)

    @property
    def _progress(self) -> Progress:
        return self._journal.state.progress

    def asleep(self, now: int) -> Mapping[str, int]:
        """Return the members of whom no program can be used, and until when."""
        return asleep(self._team, self._progress.rests, now)

    def choose(self, turn: WaitingTurn, now: int) -> str:
        """Choose who takes a turn that begins, and return what people should know about that."""
        member = self._team.member(turn.member)
        if not member.stand_in or self._agents.is_apart(turn):
            return ""
        rests, tried = self._progress.rests, self._progress.tried.get(turn.id, ())
        is_spared = bool(why_spared(self._progress, member, now))
        able = partial(awake, self._team, member, rests, now, is_spared=is_spared)
        # Who has tried it and rested since may try it again, before anybody is asked who rests now.
        by = able(tried) or able() or member.name
        before = self._progress.standing.get(member.name, member.name)
        self._agents.choose(turn, by)
        if by == before:
            return ""
        if by == member.name:
            return f"{member.name} is back: {before} no longer stands in for it."
        return f"{by} stands in for {member.name}{self._why(member, now)}."

    def _why(self, member: Member, now: int) -> str:
        rest = self._progress.rests.get(program_key(member))
        if rest is None or rest.until <= now:
            return why_spared(self._progress, member, now)
        return f" until {moment(rest.until)}: {WHY[rest.why]}"

    async def announce(self, running: RunningTurn) -> None:
        """Say in the conversation who stands in for whom from now on, or does not any more. The lock must be held."""
        if running.remark:
            by = self._agents.chosen(running.turn)
            build = partial(_announcement, self._journal.state, running.remark, running.turn.member, by)
            await self._journal.commit_message(partial(build, at=milliseconds()))
            running.remark = ""

    async def note_quota(self, running: RunningTurn) -> None:
        """Remember how much of its quota a turn's program has used, if somebody spares it. The lock must be held."""
        quota = None if running.usage is None else running.usage.quota
        key = program_key(self._agents.of(running.turn).member)
        if quota is None or not any(program_key(one) == key for one in self._sparing):
            return
        now = milliseconds()
        until = 1000 * quota.resets_at or now + 1000 * REST_SECONDS["quota"]
        quotas = {name: one for name, one in self._progress.quotas.items() if one.until > now}
        progress = replace(self._progress, quotas={**quotas, key: QuotaUse(used=quota.used, until=until)})
        await self._journal.commit(Entry(at=now, change=Change(progress=progress)))

    async def after(self, running: RunningTurn, failure: Failed | None) -> None:
        """Let somebody else take a turn that failed before it did anything, or let it wait. The lock must be held."""
        turn = running.turn
        if not self._is_needed or failure is None or failure.kind not in REST_SECONDS:
            return
        if self._journal.closing.is_set() or turn.id not in self._journal.state.undecided:
            return
        now, agent = milliseconds(), self._agents.of(turn)
        rests = {**self._progress.rests, program_key(agent.member): self._rest(turn, failure, now)}
        if not await self._may_be_tried_again(running, failure.kind):
            await self._leave_to_people(turn, rests, now)
            return
        rests |= await self._not_ready(turn, rests, now)
        choice, tried = self._choice(turn, rests, now)
        why = WHY_OF[failure.kind].format(self._agents.chosen(turn))
        build = partial(decisions.stand_in, self._journal.state, turn.id, f"{choice}, since {why}")
        await self._journal.commit_built(lambda: build(rests=rests, tried=tried, at=now))

    async def _not_ready(self, turn: WaitingTurn, rests: Mapping[str, Rest], now: int) -> dict[str, Rest]:
        """Return rests for the stand-ins of a turn that are not installed or not signed in, so that none is tried."""
        free = [
            (program_key(agent.member), agent)
            for agent in self._agents.stand_ins_of(turn)
            if not agent.is_elsewhere and _has_rested(rests.get(program_key(agent.member)), now)
        ]
        found = await asyncio.gather(*(_why_not_ready(agent) for _, agent in free))
        whys = zip((key for key, _ in free), found, strict=True)
        return {key: Rest(why=why, until=now + 1000 * REST_SECONDS[why]) for key, why in whys if why is not None}

    async def _may_be_tried_again(self, running: RunningTurn, kind: FailureKind) -> bool:
        """Return whether nobody needs to look at a turn before it is run again: it has changed nothing."""
        turn, agent = running.turn, self._agents.of(running.turn)
        if self._agents.is_apart(turn):
            return False
        if not self._team.member(turn.member).stand_in and (kind != "overloaded" or self._retries_left(turn) <= 0):
            return False
        if kind == "not_installed" and not running.has_begun:
            return True
        if agent.spec.stream != "text" and not (running.has_acted and may_change_files(agent)):
            return True
        # Of a program without a stream of events, nobody knows what it has done.
        return bool(self._team.member(turn.member).stand_in) and not await self._has_changed(turn.id)

    async def _leave_to_people(self, turn: WaitingTurn, rests: Mapping[str, Rest], now: int) -> None:
        """Note that a program rests, and say why a stand-in that could take the turn does not do so by itself."""
        tried = (*self._progress.tried.get(turn.id, ()), self._agents.chosen(turn))
        after = awake(self._team, self._team.member(turn.member), rests, now, tried)
        progress = replace(without_turn(self._progress, turn.id), rests=dict(rests))
        if after is None or self._agents.is_apart(turn):
            await self._journal.commit(Entry(at=now, change=Change(progress=progress)))
            return
        member = turn.member
        text = f"{after} does not stand in for {member} by itself: {member} may have changed files. /retry lets it."
        await self._journal.commit_message(partial(_message, self._journal.state, text, progress, at=now))

    def _retries_left(self, turn: WaitingTurn) -> int:
        """Return how often a turn of a member without stand-ins may be tried again."""
        return self._team.limits.overload_retries - len(self._progress.tried.get(turn.id, ()))

    def _rest(self, turn: WaitingTurn, failure: Failed, now: int) -> Rest:
        """Return for how long the program of a turn is left alone."""
        if failure.kind == "overloaded" and not self._team.member(turn.member).stand_in:
            tried = len(self._progress.tried.get(turn.id, ()))
            until = now + 1000 * BACKOFF_SECONDS[min(tried, len(BACKOFF_SECONDS) - 1)]
        else:
            said = reset_moment(failure.reset_at, now) if failure.reset_at else None
            until = said if said is not None else now + 1000 * REST_SECONDS[failure.kind]
            until = max(until, now + 1000 * LEAST_SECONDS)
        rest = Rest(why=failure.kind, until=until)
        # A quota may be known to be used up for longer.
        before = self._progress.rests.get(program_key(self._agents.of(turn).member), rest)
        return max(rest, before, key=lambda one: one.until)

    def _choice(self, turn: WaitingTurn, rests: Mapping[str, Rest], now: int) -> tuple[str, tuple[str, ...]]:
        """Return what becomes of a turn, and who has tried it by then: each of them once, then all of them rest."""
        member = self._team.member(turn.member)
        tried = (*self._progress.tried.get(turn.id, ()), self._agents.chosen(turn))
        if (after := awake(self._team, member, rests, now, tried)) is not None:
            until = rests[program_key(self._agents.of(turn).member)].until
            return f"{after} takes over until {moment(until)}", tried
        sleeps = wakes(self._team, member, rests, now)
        when = f"waits until {moment(sleeps.until)}" if sleeps is not None else "tried again"
        return when, () if member.stand_in else tried


def _has_rested(rest: Rest | None, now: int) -> bool:
    return rest is None or rest.until <= now


async def _why_not_ready(agent: MemberAgent) -> FailureKind | None:
    spec = agent.spec.with_permissions(agent.member.permissions)
    # Another program than the CLI's own may have no login, and arguments may name models that need none.
    is_changed = agent.member.command or agent.member.arguments or agent.extra.arguments
    spec = replace(spec, sign_in=SignInProbe()) if is_changed else spec
    try:
        # Nobody can say anything meanwhile.
        async with asyncio.timeout(MOST_PROBE_SECONDS):
            return await why_not_ready(spec, agent.environment, agent.folder)
    except TimeoutError:
        return None


def _announcement(state: ConversationState, text: str, member: str, by: str, *, message_id: str, at: int) -> Entry:
    """Return the message that says who stands in for a member now."""
    others = {name: other for name, other in state.progress.standing.items() if name != member}
    progress = replace(state.progress, standing=others if by == member else {**others, member: by})
    return _message(state, text, progress, message_id=message_id, at=at)


def _message(state: ConversationState, text: str, progress: Progress, *, message_id: str, at: int) -> Entry:
    """Return a message of ours: it asks nobody."""
    progress = replace(progress, message_number=max(progress.message_number, message_number(message_id)))
    message = ConversationMessage(id=message_id, content=text, speaker=SYSTEM, timestamp=at, routing=Routing())
    said = Said(sequence=state.messages + 1, message=message)
    return Entry(at=at, message=message, said=said, change=Change(progress=progress))
