"""What a person can decide besides speaking: continue, drop, allow, retry, skip, hand over, ask, reorder, forget.

Each is a pure function that returns an entry, or raises an error.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from bullpen.conversation.budget_events import BudgetRaised
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import (
    Continued,
    Decided,
    Dropped,
    Forgotten,
    HandOverDismissed,
    Held,
    Paused,
    PauseKind,
    Queued,
    Renamed,
    Reordered,
    SummaryDropped,
)
from bullpen.conversation.rounds import new_round
from bullpen.conversation.state import ConversationState
from bullpen.errors import NobodyToAsk, NothingRuns, NothingToDecide, NothingToForget, TurnConflict
from bullpen.markers.grammar import read_markers
from bullpen.routing.blind import new_blind
from bullpen.routing.progress import Progress, counting_again, without_questions, without_turn
from bullpen.routing.queue import PUT_FIRST, WaitingTurn
from bullpen.routing.rests import Rest
from bullpen.routing.rounds import round_of
from bullpen.routing.router import Router
from bullpen.store.base import Decision
from bullpen.team.own_memory import why_shared_here
from bullpen.team.team import BULLPEN, Member, Team

BY_PEOPLE = (
    *(BudgetRaised, Continued, Decided, Dropped, Forgotten, HandOverDismissed),
    *(Paused, Renamed, Reordered, SummaryDropped),
)
"""The events that say who decided it."""
NOTHING_SAID_YET = "Nothing has been said yet. Say something first."


def pause(kind: PauseKind, text: str, *, at: int) -> Entry:
    """Let no turn begin until a person continues."""
    return Entry(at=at, change=Change(paused=text), events=(Paused(kind=kind, text=text),))


def cancel(state: ConversationState, turn_ids: Collection[str], *, at: int) -> tuple[Entry, list[WaitingTurn]]:
    """Return the turns to cancel: those with these ids, or all running ones. If others would begin then, pause."""
    for turn_id in turn_ids:
        if turn_id not in state.running:
            raise NothingRuns(turn_id)
    turns = [turn for turn in state.running.values() if not turn_ids or turn.id in turn_ids]
    if not turns:
        raise NothingRuns
    if all(turn.id in state.progress.blocked for turn in state.queue.waiting):
        return Entry(at=at), turns
    verb = "was" if len(turns) == 1 else "were"
    names = turn_names(turns)
    return pause("cancelled", f"{names[:1].upper()}{names[1:]} {verb} cancelled.", at=at), turns


def continue_turns(state: ConversationState, *, at: int) -> Entry:
    """End a pause: waiting turns begin, the limits count from zero, and programs that rested are tried again.

    The steps after a turn that a person cancelled begin without it.
    """
    before, relays = counting_again(state.progress, at), {turn.message_id for turn in state.queue.waiting}
    left_out = {
        one.id for one in state.undecided.values() if one.turn.message_id in relays and one.id in before.cancelled
    }
    undecided = tuple(turn_id for turn_id in before.undecided if turn_id not in left_out)
    progress = replace(before, held=(), missed=None, rests={}, undecided=undecided)
    return Entry(at=at, change=Change(paused=None, progress=progress), events=(Continued(),))


def drop(
    state: ConversationState, router: Router, members: Collection[str], turn_ids: Collection[str], *, at: int
) -> Entry:
    """Take waiting turns out of the queue: those with these ids and those of these members; without either, all."""
    names = {router.member(name).name for name in members}
    waiting = state.queue.waiting
    _check_all_waiting(turn_ids, waiting)
    chosen = frozenset(turn_ids)
    turns = tuple(turn for turn in waiting if turn.id in chosen or turn.member in names or not (turn_ids or names))
    if not turns:
        return Entry(at=at)
    change = Change(progress=without_questions(state.progress, (turn.id for turn in turns)))
    if len(turns) == len(waiting):
        change = replace(change, paused=None)
    return Entry(at=at, drops=turns, change=change, events=(Dropped(turns=turns),))


def allow(state: ConversationState, turn_ids: Collection[str], *, at: int) -> Entry:
    """Let waiting turns begin that an agent may not ask for by itself."""
    unallowed = state.unallowed
    for turn_id in turn_ids:
        if turn_id not in unallowed:
            raise NothingToDecide(turn_id)
    relays = {unallowed[turn_id].message_id for turn_id in turn_ids}
    change, held = _after_a_decision(state, relays, at, settles=turn_ids)
    return Entry(
        at=at,
        change=change,
        events=(*(Decided(turn_id=turn_id, choice="allowed") for turn_id in turn_ids), *held),
    )


def retry(state: ConversationState, router: Router, turn_id: str | None, *, at: int) -> Entry:
    """Retry a turn that ended without a reply; without an id, the latest."""
    turn = _undecided_turn(state, turn_id)
    agent_named(router, turn.member)
    again = state.new_turn(turn.member, turn.message_id, intent=PUT_FIRST, step=turn.step)
    change, held = _after_a_decision(state, {turn.message_id}, at, about=turn, new_turns=1)
    return Entry(
        at=at,
        retries=turn.id,
        turns=(again,),
        change=change,
        events=(Decided(turn_id=turn.id, choice=f"retried as turn {again.id}"), Queued(turns=(again,)), *held),
    )


def retry_lost(state: ConversationState, turn_id: str, *, at: int) -> Entry:
    """Retry a turn that was lost with its worker, as the team file says. A pause stays, and limits still count."""
    turn = _undecided_turn(state, turn_id)
    again = state.new_turn(turn.member, turn.message_id, intent=PUT_FIRST, step=turn.step)
    undecided = tuple(other for other in state.progress.undecided if other != turn.id)
    progress = replace(state.progress, undecided=undecided, turns_made=state.progress.turns_made + 1)
    choice = f'retried as turn {again.id}, since the team file says on_interrupted = "retry-once"'
    entry = Entry(
        at=at,
        retries=turn.id,
        turns=(again,),
        change=Change(progress=progress),
        events=(Decided(turn_id=turn.id, choice=choice), Queued(turns=(again,))),
    )
    return decided_by(BULLPEN, "retry", entry, at=at)


def stand_in(
    state: ConversationState, turn_id: str, choice: str, *, rests: Mapping[str, Rest], tried: tuple[str, ...], at: int
) -> Entry:
    """Let a stand-in take a turn whose program cannot be used, or let it wait until one can be."""
    turn = _undecided_turn(state, turn_id)
    again = state.new_turn(turn.member, turn.message_id, intent=PUT_FIRST, step=turn.step)
    undecided = tuple(other for other in state.progress.undecided if other != turn.id)
    progress = replace(
        state.progress,
        undecided=undecided,
        turns_made=state.progress.turns_made + 1,
        # An attempt that did nothing and is taken over does not count; one that is made again and again does.
        turns=max(0, state.progress.turns - 1) if tried else state.progress.turns,
        rests=dict(rests),
        tried={**without_turn(state.progress, turn.id).tried, **({again.id: tried} if tried else {})},
    )
    entry = Entry(
        at=at,
        retries=turn.id,
        turns=(again,),
        change=Change(progress=progress, waits_for=None),
        events=(Decided(turn_id=turn.id, choice=choice), Queued(turns=(again,))),
    )
    return decided_by(BULLPEN, "stand-in", entry, at=at)


def skip(state: ConversationState, turn_id: str | None, *, at: int) -> Entry:
    """Continue without a turn that ended without a reply."""
    turn = _undecided_turn(state, turn_id)
    change, held = _after_a_decision(state, {turn.message_id}, at, about=turn)
    return Entry(at=at, change=change, events=(Decided(turn_id=turn.id, choice="skipped"), *held))


def hand_over(state: ConversationState, router: Router, member: str, turn_id: str | None, *, at: int) -> Entry:
    """Let another member answer in place of one whose turn ended without a reply."""
    turn = _undecided_turn(state, turn_id)
    name = agent_named(router, member).name
    found = round_of(state.progress.rounds, turn.id)
    if found is not None and name in (found[1].judge, *(one.member for one in found[1].candidates)):
        raise NobodyToAsk(f"{name} takes part in this already.")
    instead = state.new_turn(name, turn.message_id, intent=PUT_FIRST, step=turn.step)
    # Nobody answers a message twice: a later turn of the same member in the relay is dropped.
    drops = tuple(later for later in state.queue.of(name) if later.message_id == turn.message_id)
    dropped = (Dropped(turns=drops),) if drops else ()
    settles = [later.id for later in drops]
    change, held = _after_a_decision(state, {turn.message_id}, at, about=turn, new_turns=1, settles=settles)
    return Entry(
        at=at,
        turns=(instead,),
        drops=drops,
        change=change,
        events=(Decided(turn_id=turn.id, choice=f"{name} answers"), *dropped, Queued(turns=(instead,)), *held),
    )


def ask(
    state: ConversationState, router: Router, person: Member, asked: str, message_id: str | None, *, at: int
) -> Entry:
    """Ask members to answer the last message, written as in [NEXT: …]: "a, b", "a & b" or "a | b"."""
    route = router.route(person, read_markers(f"[NEXT: {asked}]"), in_relay=True)
    if message_id is None:
        raise NobodyToAsk(NOTHING_SAID_YET)
    if route.notes or not route.asked:
        raise NobodyToAsk(" ".join(route.notes) or f"{asked!r} does not name an agent.")
    open_turns = [*state.queue.waiting, *state.running.values()]
    already_asked = {turn.member for turn in open_turns if turn.message_id == message_id}
    fresh = [one for one in route.asked if one.member not in already_asked]
    named = {one.member for one in route.asked}
    # Naming a member is a yes to a hand-over that asks for it.
    allows = [turn.id for turn in state.unallowed.values() if turn.message_id == message_id and turn.member in named]
    if (not fresh and not allows) or (route.is_best_of and len(fresh) < len(route.asked)):
        raise NobodyToAsk(f"Already asked: {', '.join(one.member for one in route.asked)}.")
    turns = tuple(
        state.new_turn(one.member, message_id, intent=one.intent, step=one.step, number=number)
        for number, one in enumerate(fresh, start=1)
    )
    allowed = tuple(Decided(turn_id=turn_id, choice="allowed") for turn_id in allows)
    queued = (Queued(turns=turns),) if turns else ()
    change, held = _after_a_decision(state, {message_id}, at, new_turns=len(turns), settles=allows)
    if isinstance(change.progress, Progress):
        rounds = {**change.progress.rounds, **new_round(route, turns, person.name)}
        blind = {**change.progress.blind, **new_blind(turns, is_blind=route.is_blind)}
        change = replace(change, progress=replace(change.progress, rounds=rounds, blind=blind))
    return Entry(at=at, turns=turns, change=change, events=(*allowed, *queued, *held))


def reorder(state: ConversationState, turn_ids: Sequence[str], *, at: int) -> Entry:
    """Let these waiting turns begin first, in this order."""
    turn_ids = tuple(dict.fromkeys(turn_ids))
    waiting = {turn.id: turn for turn in state.queue.waiting}
    _check_all_waiting(turn_ids, waiting.values())
    first = tuple(waiting[turn_id] for turn_id in turn_ids)
    others = tuple(turn for turn in state.queue.waiting if turn.id not in turn_ids)
    moved = tuple(replace(turn, intent=PUT_FIRST) for turn in first)
    return Entry(at=at, puts_first=first, events=(Reordered(turns=(*moved, *others)),))


def set_task(_: ConversationState, task: str | None, *, at: int) -> Entry:
    """Set the team task, or remove it."""
    return Entry(at=at, change=Change(team_task=task or None))


def rename(_: ConversationState, title: str | None, *, at: int) -> Entry:  # noqa: ARG001 (like all others)
    """Give the conversation another title, or none of its own."""
    # Renaming is not activity: with time 0, the time of the last activity stays as it is.
    return Entry(at=0, change=Change(title=title), events=(Renamed(title=title),))


def forget(state: ConversationState, router: Router, person: str, member: str, *, at: int) -> Entry:
    """Let an agent's next turn begin a new session. A turn that runs meanwhile ends in the old one."""
    agent, progress = agent_named(router, member), state.progress
    name = agent.name
    if why := why_shared_here(agent):
        raise NothingToForget(
            f"{name} has no memory of its own, so there is nothing to forget: {why}. "
            "It is given the conversation again in every turn."
        )
    is_working = any(turn.member == name for turn in state.running.values())
    if not (name in state.memories or name in progress.borrowed or is_working):
        raise NothingToForget(f"{name} has no session yet, so there is nothing to forget.")
    if name not in progress.forgotten:
        progress = replace(progress, forgotten={**progress.forgotten, name: person})
    elif is_working and progress.forgetting.get(name) == "":
        # Its turn began a new session already, and that one is not wanted any more.
        progress = replace(progress, forgetting={**progress.forgetting, name: person})
    else:
        return Entry(at=at)
    change = Change(progress=progress)
    return Entry(at=at, change=change, events=(Forgotten(member=name),))


def dismiss_missed_hand_over(state: ConversationState, *, at: int) -> Entry:
    """Dismiss a missed hand-over."""
    if state.progress.missed is None:
        raise NobodyToAsk("There is no missed hand-over to dismiss.")
    return Entry(at=at, change=Change(progress=replace(state.progress, missed=None)), events=(HandOverDismissed(),))


def decided_by(person: str, choice: str, entry: Entry, *, at: int, about: Sequence[WaitingTurn] = ()) -> Entry:
    """Return an entry that is stored with who decided it. What changes nothing is not a decision."""
    if entry == Entry(at=entry.at):
        return entry
    decided = [event.turn_id for event in entry.events if isinstance(event, Decided)]
    changed = [turn.id for turn in about or (*entry.drops, *entry.puts_first, *entry.turns)]
    decision = Decision(at=at, person=person, choice=choice, turns=tuple(dict.fromkeys([*decided, *changed])))
    events = tuple(replace(event, by=person) if isinstance(event, BY_PEOPLE) else event for event in entry.events)
    return replace(entry, change=replace(entry.change, decision=decision), events=events)


def agent_named(router: Router, name: str) -> Member:
    """Return the agent with this name, or raise NobodyToAsk for a person."""
    member = router.member(name)
    if member.type != "ai":
        raise NobodyToAsk(f"{member.name} is a person.")
    return member


def last_person(team: Team, state: ConversationState) -> Member:
    """Return the person who spoke last, or the first one of the team."""
    person = state.progress.person
    return next((member for member in team.people if member.name == person), team.people[0])


def turn_names(turns: Iterable[WaitingTurn]) -> str:
    """Return turns and their members, for a sentence."""
    return ", ".join(f"turn {turn.id} of {turn.member}" for turn in turns)


def _after_a_decision(
    state: ConversationState,
    relays: Collection[str],
    at: int,
    *,
    about: WaitingTurn | None = None,
    new_turns: int = 0,
    settles: Collection[str] = (),
) -> tuple[Change, tuple[Held, ...]]:
    """Return what every decision changes: the answers to these messages continue, and the limits count from zero.

    Other turns that waited during a pause are held now.
    """
    progress = without_questions(counting_again(state.progress, at), settles)
    others = [turn for turn in state.queue.waiting if turn.message_id not in relays]
    paused = others if state.paused is not None else []
    held_before, blocked = frozenset(progress.held), frozenset(progress.blocked)
    holds = tuple(turn for turn in paused if turn.id not in blocked)
    held_now = held_before.union(turn.id for turn in holds)
    held = tuple(turn.id for turn in others if turn.id in held_now)
    undecided = tuple(turn_id for turn_id in progress.undecided if about is None or turn_id != about.id)
    turns_made = progress.turns_made + new_turns
    return (
        Change(
            paused=None,
            progress=replace(progress, held=held, missed=None, undecided=undecided, turns_made=turns_made),
        ),
        (Held(turns=holds),) if holds else (),
    )


def _undecided_turn(state: ConversationState, turn_id: str | None) -> WaitingTurn:
    if turn_id is None and state.undecided:
        return list(state.undecided.values())[-1].turn
    if turn_id not in state.undecided:
        raise NothingToDecide(turn_id)
    return state.undecided[turn_id].turn


def _check_all_waiting(turn_ids: Iterable[str], turns: Iterable[WaitingTurn]) -> None:
    waiting = {turn.id for turn in turns}
    for turn_id in turn_ids:
        if turn_id not in waiting:
            raise TurnConflict(turn_id)
