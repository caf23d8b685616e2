"""What a message or the end of a turn changes: entries, built before anything is written. Pure functions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from bullpen.context.history import message_number
from bullpen.context.manager import task_too_long
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.entry import BegunTurn, Change, Entry
from bullpen.conversation.events import (
    ConversationEvent,
    Dropped,
    HandOverMissed,
    Held,
    Offered,
    Queued,
    Said,
    TurnBegan,
    TurnEnded,
    Unallowed,
    Undecided,
)
from bullpen.conversation.reviews import is_unasked, routed
from bullpen.conversation.rounds import new_round
from bullpen.conversation.state import ConversationState, UndecidedTurn
from bullpen.conversation.summary_entries import summed_up
from bullpen.markers.grammar import Markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.asks import asks_without, new_asks
from bullpen.routing.blind import blind_of, new_blind
from bullpen.routing.missed_hand_overs import MissedHandOver, missed_hand_over, misspelled_name
from bullpen.routing.progress import (
    Progress,
    counting_again,
    usage_of_turn,
    with_own_session,
    with_reply,
    with_session,
    with_usage,
    without_asked,
    without_questions,
    without_turn,
)
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.reviews import UNASKED
from bullpen.routing.rounds import is_judges, turns_apart
from bullpen.routing.router import Route, Router
from bullpen.store.base import PoolOrder, TurnEnd
from bullpen.team.team import Member, Team
from bullpen.text.clean import byte_length

# Raw markers are kept for people to look at. No code reads them again.
MOST_RAW_MARKERS = 20
LONGEST_RAW_MARKER = 200


def speaker_of(member: Member) -> Speaker:
    """Return how a member appears in messages."""
    return Speaker(
        role_id=member.name,
        role_name=member.display_name or member.name,
        type=member.type,
        role_title=member.role or None,
    )


def person_message(
    router: Router,
    state: ConversationState,
    person: Member,
    text: str,
    markers: Markers,
    *,
    message_id: str,
    at: int,
    has_mentions: bool = True,
) -> Entry:
    """Return what a person's message changes. Turns that were waiting during a pause stay held; new ones may begin."""
    markers = router.with_mentions(markers, text) if has_mentions else markers
    route, answered = _route_of_person(router, state, person, markers)
    awaited = {turn.message_id for turn in answered}
    drops = tuple(dict.fromkeys([*answered, *_dropped(route, state)]))
    before = without_questions(state.progress, (turn.id for turn in drops))
    kept = tuple(turn for turn in state.queue.waiting if turn not in drops)
    # A relay that was waiting for this person continues, paused or not.
    paused = kept if state.paused is not None else ()
    holds = tuple(turn for turn in paused if turn.message_id not in awaited and turn.id not in before.unallowed)
    turns = _turns(route, state, message_id)
    names_nobody = bool(markers.next) and not route.addressees
    # Of several who are asked to do the same, the notes say why that is not possible.
    is_misspelled = names_nobody and markers.best_of is None
    missed = misspelled_name(text, person, router.team, markers) if is_misspelled else None
    progress = replace(
        counting_again(before, at),
        person=person.name,
        turns_made=before.turns_made + len(turns),
        message_number=max(before.message_number, message_number(message_id)),
        held=tuple(turn.id for turn in kept if turn in holds or turn.id in before.held),
        missed=missed,
        rounds={**before.rounds, **new_round(route, turns, person.name)},
        blind={**before.blind, **new_blind(turns, is_blind=route.is_blind)},
        asks=asks_without(before.asks, route.addressees),
    )
    parent = answered[0].message_id if answered else None
    message = _message(message_id, text, person, markers, route, at, parent)
    return Entry(
        at=at,
        message=message,
        turns=turns,
        drops=drops,
        change=replace(_change(route, progress, _waited_for(router, route, (*kept, *turns))), paused=None),
        said=_said(message, route, state),
        events=(*_queue_events(turns, drops, holds), *_missed_events(missed, message)),
    )


def route_of_person(router: Router, state: ConversationState, person: Member, text: str, markers: Markers) -> Route:
    """Return whom a person's message asks."""
    return _route_of_person(router, state, person, router.with_mentions(markers, text))[0]


def _route_of_person(
    router: Router, state: ConversationState, person: Member, markers: Markers
) -> tuple[Route, tuple[WaitingTurn, ...]]:
    """Return whom a person's message asks, and the person's turns in relays that it answers."""
    answered = tuple(turn for turn in state.queue.of(person.name) if not state.is_blocked(turn))
    awaited = {turn.message_id for turn in answered}
    route_with = partial(router.route, person, markers, last_to_hand_over=state.progress.handed_over.get(person.name))
    route = route_with()
    if markers.next and not route.addressees:
        # It names nobody in the team, so it asks nobody: a relay that waits for this person still waits.
        return route, ()
    drops = [*answered, *_dropped(route, state)]
    continues = any(turn.message_id in awaited and turn not in drops for turn in state.queue.waiting)
    return route_with(in_relay=True) if continues else route, answered


def note(state: ConversationState, person: Member, text: str, *, message_id: str, at: int) -> Entry:
    """Return what a note changes: it is stored for everyone to read, asks nobody, and its markers do nothing."""
    number = max(state.progress.message_number, message_number(message_id))
    message = _message(message_id, text, person, Markers(), Route(), at, parent=None)
    said = Said(sequence=state.messages + 1, message=message, reason="A note: nobody was asked.")
    return Entry(
        at=at, message=message, said=said, change=Change(progress=replace(state.progress, message_number=number))
    )


def agent_reply(
    team: Team,
    router: Router,
    state: ConversationState,
    agent: Member,
    text: str,
    markers: Markers,
    *,
    turn: WaitingTurn,
    end: TurnEnd,
    seconds: float,
    message_id: str,
    notes: tuple[str, ...] = (),
    doubt: str = "",
    asked: float = 0.0,
    extra: Mapping[str, Any] | None = None,
) -> Entry:
    """Return what an agent's reply changes; the notes say what else in it could not be done.

    `doubt` is why words may be missing in it: for people, since the agent cannot help it. `extra` is stored with it.
    """
    is_apart = turn.id in state.progress.apart
    summary = state.progress.summing.get(turn.id)
    route = _route_of_reply(router, state, agent, markers, turn, notes)
    if summary is None:
        route = routed(team, state.progress, agent, turn, text, markers, route)
    drops = _dropped(route, state)
    before = without_questions(state.progress, (turn.id for turn in drops))
    turns = _turns(route, state, message_id)
    unallowed = tuple(new for new, asked in zip(turns, route.asked, strict=True) if asked.needs_yes)
    missed = (
        None
        if route.addressees or is_apart
        else missed_hand_over(text, agent, team, markers=markers, returns_to=route.waits_for)
    )
    kept = tuple(waiting for waiting in state.queue.waiting if waiting not in drops)
    is_last = not turns and not kept
    # Who sums up has not spoken to anybody.
    hands_over = summary is None and (bool(route.addressees) or is_last)
    handed_over = {route.waits_for: agent.name} if route.waits_for and hands_over else {}
    own = usage_of_turn(end.usage, seconds=seconds - asked)
    used = without_asked(without_turn(with_usage(before, agent.name, own), turn.id), asked, end.at)
    if not is_apart and blind_of(state.progress.blind, turn) is None:
        used = with_own_session(used, agent.name, end.memory)
    asks = {} if is_apart else new_asks(agent.name, text, markers, turn.id, end.at)
    progress = replace(
        # Each summary says much of what the one before said.
        with_reply(used, agent.name, text, _first_agent(team, turns)) if summary is None else used,
        turns_made=before.turns_made + len(turns),
        message_number=max(before.message_number, message_number(message_id)),
        misses=_misses(before.misses, agent, missed, route) if summary is None else before.misses,
        missed=missed or _still_missed(before, lambda earlier: earlier.sender == agent.name),
        handed_over={**before.handed_over, **handed_over},
        unallowed={**before.unallowed, **{new.id: agent.name for new in unallowed}},
        rounds={**before.rounds, **new_round(route, turns, agent.name)},
        blind={**before.blind, **new_blind(turns, is_blind=route.is_blind)},
        asks={**asks_without(before.asks, (agent.name,)), **asks} if summary is None else before.asks,
    )
    message = _message(message_id, text, agent, markers, route, end.at, parent=turn.message_id)
    if summary is None and is_unasked(team, state.progress, agent, turn, markers):
        extra = {**(extra or {}), UNASKED: True}
    message = replace(message, extra=extra)
    if summary is not None:
        message, progress, route = summed_up(state, progress, message, route, turn.id)
    return Entry(
        at=end.at,
        message=message,
        ends=end,
        turns=turns,
        drops=drops,
        change=_change(route, progress, _waited_for(router, route, (*kept, *turns))),
        said=_said(message, route, state, end, doubt),
        events=(
            *_queue_events(turns, drops),
            *(Unallowed.of(new, agent.name) for new in unallowed),
            *_missed_events(missed, message),
            *(Offered.of(turn_id, ask) for turn_id, ask in asks.items()),
            _turn_ended(turn, end, seconds),
        ),
    )


def _route_of_reply(
    router: Router,
    state: ConversationState,
    agent: Member,
    markers: Markers,
    turn: WaitingTurn,
    notes: tuple[str, ...],
) -> Route:
    """Return whom a reply asks: nobody, if it is one of several, for a person or a judge decides then.

    The notes say what else in the reply could not be done.
    """
    rounds = state.progress.rounds
    if turn.id in state.progress.summing:
        return Route(waits_for=state.progress.person)
    if turn.id in turns_apart(rounds):
        route = Route(notes=_not_followed(agent, markers))
    else:
        route = router.route(agent, markers, person=state.progress.person)
    if markers.pick is not None and not is_judges(rounds, turn.id):
        notes = (f"{agent.name} is not a judge here, so its [PICK: …] picks nothing.", *notes)
    if markers.sum_up is not None:
        notes = (f"{agent.name} cannot ask for a summary: only people can. Its [SUM UP] is text.", *notes)
    return replace(route, notes=(*route.notes, *notes))


def _misses(before: Mapping[str, str], agent: Member, missed: MissedHandOver | None, route: Route) -> dict[str, str]:
    """Return what agents are told of their last replies that was not followed."""
    misses = {name: said for name, said in before.items() if name != agent.name}
    if missed is not None:
        how = "To hand over, write [NEXT: name] outside of code and quotes."
        misses[agent.name] = f"{missed.sentence} Nobody was asked. {how}"
    elif route.notes:
        misses[agent.name] = " ".join(route.notes)
    return misses


def turn_begins(
    state: ConversationState,
    turn: WaitingTurn,
    given: AssemblerOutput,
    *,
    began_at: int,
    at: int,
    order: PoolOrder | None = None,
    by: str = "",
) -> Entry:
    """Return what the beginning of a turn changes, with the agent's prompt; `by` is a stand-in that has it."""
    progress = with_session(state.progress, turn.member, given.report.session)
    missed = _still_missed(progress, lambda earlier: turn.member in earlier.members)
    stand_ins = {**progress.stand_ins, turn.id: by} if by else progress.stand_ins
    progress = replace(progress, turns=progress.turns + 1, missed=missed, stand_ins=stand_ins)
    size = byte_length(given.prompt) + byte_length(given.system_flag or "")
    began = TurnBegan(turn=turn, at=began_at, prompt_bytes=size, cuts=given.report.cuts, stand_in=by)
    return Entry(
        at=at,
        begins=BegunTurn(turn=turn, given=given, order=order),
        change=Change(progress=progress),
        events=(began,),
    )


def _still_missed(progress: Progress, is_over: Callable[[MissedHandOver], bool]) -> MissedHandOver | None:
    """Return the missed hand-over that people are asked about, unless it is over: others may speak meanwhile."""
    return progress.missed if progress.missed is not None and not is_over(progress.missed) else None


def turn_ends(
    state: ConversationState,
    turn: WaitingTurn,
    end: TurnEnd,
    *,
    seconds: float,
    asked: float = 0.0,
    is_wanted: bool = False,
) -> Entry:
    """Return what the end of a turn without a reply changes: a person must decide about it, unless they wanted it."""
    own = usage_of_turn(end.usage, end.failure, seconds=seconds - asked)
    used = without_asked(with_usage(state.progress, turn.member, own), asked, end.at)
    used = replace(used, stand_ins={one: by for one, by in used.stand_ins.items() if one != turn.id})
    still = (*(one for one in used.cancelled if one in used.undecided), *((turn.id,) if is_wanted else ()))
    progress = replace(used, undecided=(*used.undecided, turn.id), cancelled=still)
    undecided = UndecidedTurn(turn=turn, state=end.state, failure=end.failure)
    asks = () if is_wanted else (undecided_event(undecided),)
    return Entry(
        at=end.at,
        ends=end,
        change=Change(progress=progress, waits_for=progress.person),
        events=(_turn_ended(turn, end, seconds), *asks),
    )


def undecided_event(ended: UndecidedTurn) -> Undecided:
    """Return the event for a turn that ended without a reply."""
    state = ended.state if ended.state != "done" else "failed"
    return Undecided(turn=ended.turn, state=state, text=ended.sentence)


def _said(
    message: ConversationMessage, route: Route, state: ConversationState, end: TurnEnd | None = None, doubt: str = ""
) -> Said:
    return Said(
        sequence=state.messages + 1,
        message=message,
        turn_id=None if end is None else end.turn_id,
        reason=route.reason,
        notes=(*route.notes, *_content_notes(message, route), *([doubt] if doubt else [])),
        rebuilt="" if end is None or end.memory is None else end.memory.reason,
    )


def _not_followed(agent: Member, markers: Markers) -> tuple[str, ...]:
    """Return a note on what a member wants of others while it does a task apart from them, or judges."""
    if not (markers.next or markers.drop or markers.team_task):
        return ()
    return (f"{agent.name} is one of several here, so its hand-overs and other markers are not followed.",)


def _content_notes(message: ConversationMessage, route: Route) -> Iterator[str]:
    """Yield notes about the text of a message."""
    sets_task = route.team_task is not None
    if (sets_task or route.asked) and not strip_all_markers(message.content):
        yield (
            "The whole message became the team task. Agents also get it as the message."
            if sets_task
            else "This message contains only markers, so agents get only the conversation before it."
        )
    if route.team_task is not None and (note := task_too_long(route.team_task)):
        yield note


def _missed_events(missed: MissedHandOver | None, message: ConversationMessage) -> Iterator[ConversationEvent]:
    if missed is not None:
        yield HandOverMissed.of(missed, message.id)


def _queue_events(
    turns: tuple[WaitingTurn, ...], drops: tuple[WaitingTurn, ...], holds: tuple[WaitingTurn, ...] = ()
) -> Iterator[ConversationEvent]:
    if drops:
        yield Dropped(turns=drops)
    if holds:
        yield Held(turns=holds)
    if turns:
        yield Queued(turns=turns)


def _turn_ended(turn: WaitingTurn, end: TurnEnd, seconds: float) -> TurnEnded:
    return TurnEnded(
        turn_id=turn.id,
        member=turn.member,
        state=end.state,
        seconds=seconds,
        usage=end.usage,
        failure=end.failure,
    )


def _turns(route: Route, state: ConversationState, message_id: str) -> tuple[WaitingTurn, ...]:
    return tuple(
        state.new_turn(asked.member, message_id, intent=asked.intent, step=asked.step, number=number)
        for number, asked in enumerate(route.asked, start=1)
    )


def _dropped(route: Route, state: ConversationState) -> tuple[WaitingTurn, ...]:
    return tuple(turn for turn in state.queue.waiting if route.drops_all or turn.member in route.drops)


def _first_agent(team: Team, turns: Sequence[WaitingTurn]) -> str | None:
    return next((turn.member for turn in turns if team.member(turn.member).type == "ai"), None)


def _waited_for(router: Router, route: Route, waiting: Iterable[WaitingTurn]) -> str | None:
    """Return the person we wait for: the one named, else the next in a relay, else the one it returns to."""
    if route.waits_for in route.addressees:
        return route.waits_for
    return next((turn.member for turn in waiting if router.member(turn.member).type == "human"), route.waits_for)


def _change(route: Route, progress: Progress, waits_for: str | None) -> Change:
    change = Change(waits_for=waits_for, progress=progress)
    return change if route.team_task is None else replace(change, team_task=route.team_task)


def _message(
    message_id: str, text: str, member: Member, markers: Markers, route: Route, at: int, parent: str | None
) -> ConversationMessage:
    raw = [marker.value[:LONGEST_RAW_MARKER] for marker in markers if marker.kind == "next"]
    routing = Routing(
        resolved_addressees=route.addressees,
        raw_next_markers=tuple(raw[:MOST_RAW_MARKERS]),
        drop_targets=("ALL",) if route.drops_all else route.drops,
        parent_message_id=parent,
        intent=f"P{route.asked[0].intent}" if route.asked else None,
    )
    return ConversationMessage(id=message_id, content=text, speaker=speaker_of(member), timestamp=at, routing=routing)
