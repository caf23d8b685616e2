"""ConversationView: one conversation at one moment, as every door shows it and the API answers it.

For a conversation that this process owns it is worked out from memory; for any other, from what is stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.check_results import CheckResult
from bullpen.clock import milliseconds
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Asked, Conflicted, LeftByUndo, ProgramsChanged, Unallowed, Unapproved, Unpicked
from bullpen.conversation.owner import is_alive
from bullpen.conversation.running_turn import RunningTurn
from bullpen.conversation.state import UndecidedTurn, last_memories, stored_progress, undecided_turn
from bullpen.conversation.workspaces import MAY_EDIT, workspaces
from bullpen.errors import InvalidTeam
from bullpen.memory import Memory
from bullpen.routing.budgets import BudgetUse, asked_about, budget_uses, members_spent, members_waiting
from bullpen.routing.missed_hand_overs import MissedHandOver
from bullpen.routing.obstacles import Checking, Obstacle, Situation, obstacles
from bullpen.routing.progress import MemberUsage, Progress, usage_of_turn
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rests import asleep
from bullpen.store.base import Store, StoredConversation, Turn
from bullpen.team.reader import examine_team
from bullpen.team.team import Team, colours_of
from bullpen.view.activity import ACTIVITIES, ASLEEP, FAILED, WAITS, WORKING, Activity, ActivityName
from bullpen.view.budgets import BudgetView, about_budgets, budget_views
from bullpen.view.choices import Decision
from bullpen.view.decisions import decisions, shortened_partial
from bullpen.view.listing import title_of
from bullpen.view.memory import MemoryView, memory_view
from bullpen.view.summaries import ShownSummary, shown_summaries
from bullpen.view.waiting import after, countdown, waits_for

MemberStatus = Literal["working", "undecided", "your_turn", "idle"]
Status = Literal["working", "paused", "your_turn", "idle"]


class Spent(Struct, frozen=True, kw_only=True):
    """What turns have used."""

    turns: int = 0
    failures: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    """None if nobody knows."""
    is_estimate: bool = False
    """Whether some of it is what tokens cost by a list of prices."""
    last_failure: str = ""


class Working(Struct, frozen=True, kw_only=True):
    """A running turn."""

    turn: str
    member: str
    doing: str
    since: int
    """Milliseconds since 1970."""
    tokens: int = 0
    cost_usd: float | None = None
    is_estimate: bool = False
    activity: ActivityName = "working"
    """Or "waits": it has asked a person something."""

    @property
    def words(self) -> str:
        """What it does, in a few words."""
        return self.doing if self.activity == "working" else ACTIVITIES[self.activity].word


class RunningCheck(Struct, frozen=True, kw_only=True):
    """A check that runs after a turn which changed files."""

    name: str
    turn: str
    member: str
    since: int
    """Milliseconds since 1970."""


class MemberView(Struct, frozen=True, kw_only=True):
    """A member of the team, what it does now, and what it has used."""

    name: str
    display_name: str
    type: str
    role: str
    color: str
    agent: str
    """Which CLI or program it is; empty for a person."""
    model: str = ""
    """The model that the team file gives it; empty: its CLI's own choice."""
    has_full_permissions: bool = False
    spent: Spent
    status: MemberStatus = "idle"
    activity: ActivityName = "asleep"
    """What it does now, in one of four words. Of a person, "waits": their message is awaited."""
    working: Working | None = None
    memory: MemoryView | None = None
    """What it remembers between its turns; None for a person."""
    review: str = ""
    """What it reviews now, and how far that is: "sarah reviews max: round 2 of 5, waiting for max"."""


class QueuedTurn(Struct, frozen=True, kw_only=True):
    """A waiting turn."""

    turn: str
    member: str
    held: bool = False
    """It does not begin until a person continues, or allows it."""
    at_once: bool = False
    """It begins together with the one before it."""
    waits_for: str = ""
    """Why it waits, such as "waits for max (turn 7): both may edit /repo"; empty if it is held or about to begin."""
    after: str = ""
    """The id of the turn that it waits for, if it does."""
    until: int = 0
    """When it begins by itself, if it sleeps until then, in milliseconds since 1970."""

    @property
    def why(self) -> str:
        """Why it waits, and how much longer if that is known: for doors that count it down."""
        return f"{self.waits_for} ({countdown(self.until, milliseconds())})" if self.until else self.waits_for


class UndecidedView(Struct, frozen=True, kw_only=True):
    """A turn that ended without a reply."""

    turn: str
    member: str
    state: str
    text: str
    partial_text: str = ""


class MissedView(Struct, frozen=True, kw_only=True):
    """A hand-over that an agent probably meant."""

    member: str
    names: tuple[str, ...]
    text: str


class ConversationView(Struct, frozen=True, kw_only=True):
    """One conversation at one moment."""

    id: str
    team: str
    title: str = ""
    """What a person calls it, else how it begins."""
    is_open: bool
    """Whether this process runs its turns."""
    is_owned: bool = True
    """Whether any process does."""
    status: Status = "idle"
    number: int = 0
    """The number of the latest event that is in here; those after it can be watched."""
    epoch: str = ""
    """Numbers are only comparable within one."""
    task: str | None = None
    paused: str | None = None
    waits_for: str | None = None
    members: tuple[MemberView, ...] = ()
    working: tuple[Working, ...] = ()
    checking: tuple[RunningCheck, ...] = ()
    """The checks that run now."""
    queue: tuple[QueuedTurn, ...] = ()
    decisions: tuple[Decision, ...] = ()
    """What a person is asked to decide, the most urgent first."""
    undecided: tuple[UndecidedView, ...] = ()
    cancelled: tuple[UndecidedView, ...] = ()
    """Turns that a person cancelled: nobody is asked about them, and they can be retried."""
    missed: MissedView | None = None
    total: Spent = Spent()
    budgets: tuple[BudgetView, ...] = ()
    """How much of every budget is used."""
    summaries: tuple[ShownSummary, ...] = ()
    """What was summed up, the newest first."""

    @property
    def activity(self) -> Activity:
        """What it does now. What waits for a person comes first: it needs somebody who looks."""
        if self.decisions:
            has_failed = any(one.is_failure for one in self.decisions)
            return FAILED if has_failed and not any(one.asks for one in self.decisions) else WAITS
        if self.status == "working":
            return WORKING
        return WAITS if self.status == "your_turn" and self.is_owned else ASLEEP

    def activity_for(self, person: str | None) -> Activity:
        """Do the same for one person: it may wait for another."""
        now = self.activity
        is_other = now == WAITS and not self.decisions and person not in (None, self.waits_for)
        return replace(now, word=f"waits for {self.waits_for}") if is_other else now

    @property
    def colors(self) -> dict[str, str]:
        """Each member's colour, by its name."""
        return {member.name: member.color for member in self.members}


def conversation_view(conversation: Conversation, epoch: str = "") -> ConversationView:
    """Return a conversation that is open here. Everything is in memory."""
    asked = tuple(conversation.approvals.open.values())
    asking = {one.turn_id for one in asked}
    return _view(
        team=conversation.team,
        working=[_working(running, asks=turn_id in asking) for turn_id, running in conversation.running.items()],
        running=[running.turn for running in conversation.running.values()],
        workspaces=conversation.workspaces,
        waiting=conversation.waiting,
        held={turn.id for turn in conversation.held},
        undecided=conversation.undecided,
        progress=conversation.progress,
        memories=conversation.memories,
        known=ConversationView(
            id=conversation.id,
            team=conversation.team.name,
            title=title_of(conversation.title, conversation.first_words),
            is_open=True,
            number=conversation.last_number,
            epoch=epoch,
            task=conversation.team_task,
            paused=conversation.paused,
            waits_for=conversation.waits_for,
            checking=tuple(map(_running_check, conversation.running_checks)),
        ),
        checking=conversation.checking,
        asked=asked,
        uses=conversation.budget_uses,
    )


def working_view(conversation: Conversation, running: RunningTurn) -> Working:
    """Return what one running turn of an open conversation does now."""
    asks = any(asked.turn_id == running.turn.id for asked in conversation.approvals.open.values())
    return _working(running, asks=asks)


def stored_view(store: Store, conversation_id: str) -> ConversationView:
    """Return a conversation that another process owns, or nobody, as far as the store knows it."""
    stored = store.conversation(conversation_id)
    progress = stored_progress(store, stored)
    is_owned = stored.owner is not None and is_alive(stored.owner, store)
    running = store.running(conversation_id)
    ended = [store.turn(conversation_id, turn_id) for turn_id in progress.undecided]
    team = team_of(stored)
    edited = workspaces(team.agents, Path(stored.team_path).parent) if team else {}
    checks = store.running_checks(conversation_id) if is_owned else []
    asked = [
        Asked(turn_id=one.turn_id, member=one.member, question=one.asked, at=one.at)
        for one in (store.open_approvals(conversation_id) if is_owned else ())
        if one.asked is not None
    ]
    asking = {one.turn_id for one in asked}
    # What still runs in a conversation that no process owns was interrupted: the process was killed.
    return _view(
        team=team,
        working=[_stored_working(turn, asks=turn.id in asking) for turn in running] if is_owned else (),
        running=[turn.waiting for turn in running] if is_owned else (),
        workspaces=edited,
        waiting=tuple(turn.waiting for turn in store.queued(conversation_id)),
        held=set(progress.held),
        undecided=tuple(map(undecided_turn, [*ended, *(() if is_owned else running)])),
        progress=progress,
        memories=last_memories(store, conversation_id),
        known=ConversationView(
            id=stored.id,
            team=stored.team,
            title=title_of(stored.title, stored.first_words),
            is_open=False,
            is_owned=is_owned,
            task=stored.team_task,
            paused=stored.paused,
            waits_for=stored.waits_for,
            checking=tuple(map(_running_check, checks)),
        ),
        checking=[
            Checking(turn=store.turn(conversation_id, one.turn_id).waiting, workspace=edited.get(one.member, ""))
            for one in checks
        ],
        asked=asked,
        uses=budget_uses(team, progress) if team else (),
    )


def team_of(stored: StoredConversation) -> Team | None:
    """Return the team that a conversation was started with, as far as its file can still be read."""
    try:
        return examine_team(stored.team_file)[0]
    except InvalidTeam:
        return None


def _view(
    *,
    team: Team | None,
    working: Sequence[Working],
    running: Sequence[WaitingTurn],
    workspaces: Mapping[str, str],
    waiting: Sequence[WaitingTurn],
    held: set[str],
    undecided: Sequence[UndecidedTurn],
    progress: Progress,
    memories: Mapping[str, Memory],
    known: ConversationView,
    checking: Sequence[Checking],
    asked: Sequence[Asked] = (),
    uses: Sequence[BudgetUse] = (),
) -> ConversationView:
    """Return what follows from the parts; `known` has those that are shown as they are."""
    ended, undecided = undecided, [one for one in undecided if one.id not in progress.cancelled]
    cancelled = [one for one in ended if one.id in progress.cancelled]
    missed = None if working or waiting else progress.missed
    unallowed = [Unallowed.of(turn, progress.unallowed[turn.id]) for turn in waiting if turn.id in progress.unallowed]
    blocked = held | {asked.turn.id for asked in unallowed}
    situation = Situation(
        running=running,
        held=blocked,
        undecided=[one.turn for one in ended],
        workspaces=workspaces,
        checking=checking,
        apart=progress.apart,
    )
    waits = obstacles(waiting, situation if team is None else _with_team(situation, team, progress, uses))
    queued = members_waiting(team, waiting) if team else frozenset()
    stopped = members_waiting(team, (one.turn for one in undecided)) if team else frozenset()
    budgets = about_budgets(asked_about(uses, queued | stopped), queued)
    unpicked = [Unpicked.of(key, one) for key, one in progress.rounds.items() if one.state == "asking"]
    unapproved = [Unapproved.of(one) for one in progress.reviews.values() if one.state == "asking"]
    found = decisions(
        undecided=undecided,
        asked=asked,
        asks=progress.asks,
        budgets=budgets,
        unallowed=unallowed,
        programs=[ProgramsChanged.of(turn, change) for turn, change in progress.programs.items()],
        left=[LeftByUndo.of(turn, files) for turn, files in progress.files_left.items()],
        conflicts=[Conflicted.of(turn, conflict) for turn, conflict in progress.conflicts.items()],
        unpicked=unpicked,
        unapproved=unapproved,
        paused=known.paused,
        waiting=len(waiting),
        held=[turn.member for turn in waiting if turn.id in held],
        missed=missed,
        agents=[agent.name for agent in team.agents] if team else (),
        editors=[agent.name for agent in team.agents if agent.permissions in MAY_EDIT] if team else (),
        can_begin=len(waits) < len(waiting),
        cancelled=cancelled,
    )
    status = _status(
        known,
        working,
        needs_decision=any(
            (
                undecided,
                budgets,
                unallowed,
                progress.conflicts,
                progress.programs,
                progress.files_left,
                unpicked,
                unapproved,
            )
        ),
        can_begin=len(waits) < len(waiting) and not progress.programs,
    )
    # While an agent works on what a person has asked, it is not that person's turn, even after a hand-over to them.
    awaited = None if status == "working" else known.waits_for
    return replace(
        known,
        status=status,
        members=tuple(_members(team, progress, memories, working, undecided, awaited, found)),
        working=tuple(working),
        queue=tuple(
            _queue(waiting, blocked, waits, is_paused=known.paused is not None, is_asked=bool(progress.programs))
        ),
        decisions=found,
        undecided=tuple(map(_undecided, undecided)),
        cancelled=tuple(map(_undecided, cancelled)),
        missed=None if missed is None else _missed(missed),
        total=_total(progress.used.values(), working),
        budgets=budget_views(uses),
        summaries=shown_summaries(progress),
    )


def _with_team(situation: Situation, team: Team, progress: Progress, uses: Sequence[BudgetUse]) -> Situation:
    """Return a situation with what only the team file says: who is a person, whose programs rest, whose budgets end."""
    people, spent = [person.name for person in team.people], members_spent(team, uses)
    return replace(situation, people=people, asleep=asleep(team, progress.rests, milliseconds()), spent=spent)


def _status(known: ConversationView, working: Sequence[Working], *, needs_decision: bool, can_begin: bool) -> Status:
    if working or known.checking or (can_begin and known.paused is None and known.is_owned):
        return "working"
    if needs_decision or known.paused is not None:
        return "paused"
    return "idle" if known.waits_for is None else "your_turn"


def _members(
    team: Team | None,
    progress: Progress,
    memories: Mapping[str, Memory],
    working: Iterable[Working],
    undecided: Iterable[UndecidedTurn],
    waits_for: str | None,
    found: Iterable[Decision],
) -> Iterable[MemberView]:
    colours = colours_of(team) if team else {}
    running = {one.member: one for one in working}
    failed = {ended.member for ended in undecided}
    asking = {decision.member for decision in found if not decision.is_failure}
    reviews = {one.reviewer: one.sentence for one in progress.reviews.values() if not one.is_over}
    for member in team.members if team else ():
        name = member.name
        status: MemberStatus = (
            "working"
            if name in running
            else "undecided"
            if name in failed
            else "your_turn"
            if name == waits_for
            else "idle"
        )
        yield MemberView(
            name=name,
            display_name=member.display_name or name,
            type=member.type,
            role=member.role,
            color=colours[name],
            agent=member.program,
            model=member.model or "",
            has_full_permissions=member.type == "ai" and member.permissions == "full",
            spent=_spent(progress.used.get(name, MemberUsage())),
            status=status,
            activity=_activity(status, running.get(name), asks=name in asking),
            working=running.get(name),
            memory=memory_view(member, memories.get(name), progress) if member.type == "ai" else None,
            review=reviews.get(name, ""),
        )


def _activity(status: MemberStatus, working: Working | None, *, asks: bool) -> ActivityName:
    if working is not None:
        return working.activity
    if status == "undecided":
        return "failed"
    return "waits" if asks or status == "your_turn" else "asleep"


def _working(running: RunningTurn, *, asks: bool) -> Working:
    turn, used = running.turn, usage_of_turn(running.usage)
    return Working(
        turn=turn.id,
        member=turn.member,
        doing=running.doing_now,
        since=running.began_at,
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        is_estimate=used.is_estimate,
        activity="waits" if asks else "working",
    )


def _running_check(result: CheckResult) -> RunningCheck:
    return RunningCheck(name=result.name, turn=result.turn_id, member=result.member, since=result.at)


def _stored_working(turn: Turn, *, asks: bool) -> Working:
    activity: ActivityName = "waits" if asks else "working"
    return Working(
        turn=turn.id, member=turn.member, doing=ACTIVITIES[activity].word, since=turn.started_at or 0, activity=activity
    )


def _queue(
    waiting: Iterable[WaitingTurn], blocked: set[str], waits: Mapping[str, Obstacle], *, is_paused: bool, is_asked: bool
) -> Iterable[QueuedTurn]:
    before: tuple[str, int, int] | None = None
    for turn in waiting:
        group = turn.message_id, turn.step, turn.intent
        obstacle = waits.get(turn.id)
        yield QueuedTurn(
            turn=turn.id,
            member=turn.member,
            held=turn.id in blocked,
            at_once=group == before,
            waits_for=waits_for(turn, obstacle, is_paused=is_paused, is_asked=is_asked),
            after=after(turn, obstacle),
            until=0 if obstacle is None else obstacle.until,
        )
        before = group


def _undecided(ended: UndecidedTurn) -> UndecidedView:
    return UndecidedView(
        turn=ended.id,
        member=ended.member,
        state=ended.state,
        text=ended.reason,
        partial_text=shortened_partial(ended),
    )


def _missed(missed: MissedHandOver) -> MissedView:
    return MissedView(member=missed.sender, names=missed.members, text=missed.sentence)


def _spent(usage: MemberUsage) -> Spent:
    return Spent(
        turns=usage.turns,
        failures=usage.failures,
        tokens=usage.tokens,
        cost_usd=usage.cost_usd,
        is_estimate=usage.is_estimate,
        last_failure=usage.last_failure,
    )


def _total(used: Iterable[MemberUsage], working: Iterable[Working]) -> Spent:
    """Return what everyone has used, with what the running turns have used so far."""
    now = [MemberUsage(tokens=one.tokens, cost_usd=one.cost_usd, is_estimate=one.is_estimate) for one in working]
    return _spent(sum([*used, *now], start=MemberUsage()))
