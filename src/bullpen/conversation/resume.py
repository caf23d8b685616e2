"""Opening a conversation again: running turns are interrupted, waiting ones paused, former members' dropped."""

from msgspec.structs import replace

from bullpen.conversation.budget_events import BudgetReached
from bullpen.conversation.budgets import sentences
from bullpen.conversation.consequences import undecided_event
from bullpen.conversation.decisions import turn_names
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import (
    Conflicted,
    ConversationEvent,
    Dropped,
    LeftByUndo,
    Offered,
    Paused,
    PauseKind,
    ProgramsChanged,
    Unallowed,
    Unapproved,
    Unpicked,
)
from bullpen.conversation.state import ConversationState
from bullpen.routing.budgets import budget_uses, members_spent
from bullpen.routing.obstacles import Situation, may_begin
from bullpen.routing.progress import Progress, usage_of_turn, with_usage, without_questions
from bullpen.routing.queue import WaitingTurn
from bullpen.team.reach import reach
from bullpen.team.team import Member, Team


def resume(team: Team, state: ConversationState, *, at: int, continues: bool = False) -> Entry | None:
    """Return what must change when another process opens a conversation; None if nothing must.

    No turn begins by itself: the person has not seen the conversation's state yet. But if it continues, people have it
    before them, and only its process is another one.
    """
    members = {member.name for member in team.members}
    gone = tuple(turn for turn in state.queue.waiting if turn.member not in members)
    remembered = without_questions(_without_former_members(team, state.progress), (turn.id for turn in gone))
    progress = _with_lost_turns(_with_new_questions(team, state, gone, remembered), state.lost)
    paused = state.paused if continues and not state.lost else _reason_to_pause(team, state, gone, progress)
    people = {person.name for person in team.people}
    waits_for = state.waits_for if state.waits_for in people else None
    if state.lost:
        waits_for = progress.person
    change = Change(progress=progress, waits_for=waits_for, paused=paused)
    before = Change(progress=state.progress, waits_for=state.waits_for, paused=state.paused)
    if not gone and change == before:
        return None
    return Entry(at=at, drops=gone, change=change, events=(Dropped(turns=gone),) if gone else ())


def opening_events(team: Team, state: ConversationState) -> list[ConversationEvent]:
    """Return the first events for viewers: why no turn begins, and which turns need a decision."""
    uses = [one for one in budget_uses(team, state.progress) if one.is_reached]
    budgets = [BudgetReached(member=owner, text=sentences(uses, owner)) for owner in state.progress.spent]
    paused = [] if state.paused is None else [Paused(kind=_kind(state), text=state.paused)]
    unallowed = [Unallowed.of(turn, state.progress.unallowed[turn.id]) for turn in state.unallowed.values()]
    conflicts = [Conflicted.of(turn, conflict) for turn, conflict in state.progress.conflicts.items()]
    rounds = [Unpicked.of(key, one) for key, one in state.progress.rounds.items() if one.state == "asking"]
    reviews = [Unapproved.of(one) for one in state.progress.reviews.values() if one.state == "asking"]
    asks = [Offered.of(turn, ask) for turn, ask in state.progress.asks.items()]
    undecided = [undecided_event(state.undecided[turn]) for turn in state.progress.unwanted if turn in state.undecided]
    programs = [ProgramsChanged.of(turn, change) for turn, change in state.progress.programs.items()]
    left = [LeftByUndo.of(turn, files) for turn, files in state.progress.files_left.items()]
    return [*paused, *budgets, *programs, *left, *undecided, *conflicts, *rounds, *reviews, *unallowed, *asks]


def _kind(state: ConversationState) -> PauseKind:
    return "interrupted" if state.lost else "left_over"


def _with_new_questions(
    team: Team, state: ConversationState, gone: tuple[WaitingTurn, ...], before: Progress
) -> Progress:
    """Ask a person about turns that an agent asked for, and may not by itself as the team file is now."""
    members = {member.name: member for member in team.members}
    asked = {
        turn.id: by
        for turn in state.queue.waiting
        if turn not in gone and (by := state.handed_over.get(turn.id)) is not None
        if _needs_yes(members.get(by), members[turn.member])
    }
    return replace(before, unallowed={**asked, **before.unallowed}) if asked else before


def _needs_yes(sender: Member | None, member: Member) -> bool:
    if sender is None:
        # It was taken out of the team file, so nobody knows what it was allowed to do.
        return member.permissions == "full"
    how = reach(sender, member)
    return how == "if_allowed" or (how == "never" and member.permissions == "full")


def _reason_to_pause(
    team: Team, state: ConversationState, gone: tuple[WaitingTurn, ...], progress: Progress
) -> str | None:
    if state.lost:
        return f"bullpen stopped during {turn_names(state.lost)}. Files may have been changed."
    waiting = [turn for turn in state.queue.waiting if turn not in gone]
    situation = Situation(
        people=[person.name for person in team.people],
        held=progress.blocked,
        undecided=[ended.turn for ended in state.undecided.values()],
        # People are asked about these anyway.
        spent=members_spent(team, budget_uses(team, progress)),
    )
    if state.paused is not None or not may_begin(waiting, situation):
        return state.paused
    count = len(waiting)
    return f"{count} turn{'s were' if count != 1 else ' was'} waiting when bullpen stopped."


def _without_former_members(team: Team, before: Progress) -> Progress:
    """Return what is remembered without members that the team file does not name any more."""
    people = {person.name for person in team.people}
    agents = {agent.name for agent in team.agents}
    spent = {one.member for one in budget_uses(team, before) if one.is_reached}
    return replace(
        before,
        # The team file may give more by now, or no budget at all.
        spent=tuple(owner for owner in before.spent if owner in spent),
        person=before.person if before.person in people else None,
        handed_over={to: by for to, by in before.handed_over.items() if to in people and by in agents},
    )


def _with_lost_turns(progress: Progress, lost: tuple[WaitingTurn, ...]) -> Progress:
    for turn in lost:
        if turn.id not in progress.undecided:
            progress = with_usage(progress, turn.member, usage_of_turn(None, interrupted=True))
    undecided = tuple(dict.fromkeys([*progress.undecided, *(turn.id for turn in lost)]))
    return replace(progress, undecided=undecided)
