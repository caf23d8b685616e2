"""Recording: what a message sets in motion, worked out before anything is written. Pure, given the ledger."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bullpen.context.manager import task_too_long
from bullpen.conversation import events
from bullpen.conversation.events import Dropped, Held, News, Queued, Said
from bullpen.conversation.state import Change, Ledger
from bullpen.markers.grammar import Markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.missed_hand_overs import MissedHandOver, missed_hand_over
from bullpen.routing.progress import Progress, counting_again, with_reply, with_usage
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.router import Route, Router
from bullpen.store.base import TurnEnd
from bullpen.team.team import Member, Team

# What an author wrote is kept for those who look, not to be read by machines again.
MOST_RAW_MARKERS = 20
LONGEST_RAW_MARKER = 200


class Entry(Struct, frozen=True, kw_only=True):
    """A message and all that it changes."""

    message: ConversationMessage
    route: Route
    turns: tuple[WaitingTurn, ...]
    drops: tuple[WaitingTurn, ...]
    holds: tuple[WaitingTurn, ...] = ()
    missed: MissedHandOver | None = None
    change: Change


def speaker_of(member: Member) -> Speaker:
    """Return how a member appears in messages."""
    return Speaker(
        role_id=member.name,
        role_name=member.display_name or member.name,
        type=member.type,
        role_title=member.role or None,
    )


def word_of_a_person(
    router: Router, ledger: Ledger, person: Member, text: str, markers: Markers, *, message_id: str, at: int
) -> Entry:
    """Return what a person's message changes. What waits behind a pause stays where it is; what is new may begin."""
    before = ledger.progress
    answered = tuple(turn for turn in ledger.queue.of(person.name) if not ledger.is_behind_others(turn))
    awaited = {turn.message_id for turn in answered}
    last_to_hand_over = before.handed_over.get(person.name)
    route = router.route(person, markers, last_to_hand_over=last_to_hand_over)
    drops = tuple(dict.fromkeys([*answered, *_dropped(route, ledger)]))
    kept = tuple(turn for turn in ledger.queue.waiting if turn not in drops)
    if any(turn.message_id in awaited for turn in kept):
        route = router.route(person, markers, last_to_hand_over=last_to_hand_over, in_relay=True)
    # Who waited in a relay for this word goes on; a pause does not change what it means.
    holds = tuple(turn for turn in kept if ledger.paused is not None and turn.message_id not in awaited)
    turns = _turns(route, ledger, message_id)
    progress = replace(
        counting_again(before, at),
        person=person.name,
        turns_made=before.turns_made + len(turns),
        held=tuple(turn.id for turn in kept if turn in holds or turn.id in before.held),
    )
    return Entry(
        message=_message(
            message_id, text, person, markers, route, at, parent=answered[0].message_id if answered else None
        ),
        route=route,
        turns=turns,
        drops=drops,
        holds=holds,
        change=replace(_change(route, progress, _waited_for(router, route, (*kept, *turns))), paused=None),
    )


def reply_of_an_agent(
    team: Team,
    router: Router,
    ledger: Ledger,
    agent: Member,
    text: str,
    markers: Markers,
    *,
    turn: WaitingTurn,
    end: TurnEnd,
    message_id: str,
) -> Entry:
    """Return what an agent's reply changes."""
    before = ledger.progress
    route = router.route(agent, markers, person=before.person)
    drops = _dropped(route, ledger)
    turns = _turns(route, ledger, message_id)
    missed = None if route.addressees else missed_hand_over(text, agent, team, returns_to=route.waits_for)
    misses = {name: said for name, said in before.misses.items() if name != agent.name}
    if missed is not None:
        misses[agent.name] = f"{missed.sentence} Nobody was asked. Write [NEXT: name] in the open to hand over."
    elif route.notes:
        misses[agent.name] = " ".join(route.notes)
    kept = tuple(turn for turn in ledger.queue.waiting if turn not in drops)
    is_last = not turns and not kept
    handed_over = {route.waits_for: agent.name} if route.waits_for and (route.addressees or is_last) else {}
    progress = replace(
        with_reply(with_usage(before, end.usage), agent.name, text, _first_agent(team, turns)),
        turns_made=before.turns_made + len(turns),
        misses=misses,
        handed_over={**before.handed_over, **handed_over},
    )
    return Entry(
        message=_message(message_id, text, agent, markers, route, end.at, parent=turn.message_id),
        route=route,
        turns=turns,
        drops=drops,
        missed=missed,
        change=_change(route, progress, _waited_for(router, route, (*kept, *turns))),
    )


def said(entry: Entry, sequence: int, finishes: TurnEnd | None) -> Said:
    """Return what there is to tell about the message itself."""
    return Said(
        sequence=sequence,
        message=entry.message,
        turn_id=finishes.turn_id if finishes else None,
        reason=entry.route.reason,
        notes=(*entry.route.notes, *_task_notes(entry)),
    )


def _task_notes(entry: Entry) -> Iterator[str]:
    task = entry.route.team_task
    if task is None:
        return
    if not strip_all_markers(entry.message.content):
        yield "All of this message became the team's task. It is asked as the message, too."
    if note := task_too_long(task):
        yield note


def news_after(entry: Entry) -> Iterator[News]:
    """Yield what there is to tell about all that a message set in motion."""
    if entry.drops:
        yield Dropped(turns=entry.drops)
    if entry.holds:
        yield Held(turns=entry.holds)
    if entry.turns:
        yield Queued(turns=entry.turns)
    if entry.missed is not None:
        yield events.MissedHandOver(
            member=entry.missed.sender,
            message_id=entry.message.id,
            names=entry.missed.members,
            quote=entry.missed.quote,
            text=entry.missed.sentence,
        )


def _turns(route: Route, ledger: Ledger, message_id: str) -> tuple[WaitingTurn, ...]:
    return tuple(
        ledger.new_turn(asked.member, message_id, intent=asked.intent, step=asked.step, number=number)
        for number, asked in enumerate(route.asked, start=1)
    )


def _dropped(route: Route, ledger: Ledger) -> tuple[WaitingTurn, ...]:
    return tuple(turn for turn in ledger.queue.waiting if route.drops_all or turn.member in route.drops)


def _first_agent(team: Team, turns: Sequence[WaitingTurn]) -> str | None:
    return next((turn.member for turn in turns if team.member(turn.member).type == "ai"), None)


def _waited_for(router: Router, route: Route, waiting: Iterable[WaitingTurn]) -> str | None:
    """Return the person whose word is awaited: who is named, else who holds up a relay, else who gets it back."""
    if route.waits_for in route.addressees:
        return route.waits_for
    return next((turn.member for turn in waiting if router.member(turn.member).type == "human"), route.waits_for)


def _change(route: Route, progress: Progress, waits_for: str | None) -> Change:
    change = Change(waits_for=waits_for, progress=progress)
    if route.team_task is not None:
        change = replace(change, team_task=route.team_task)
    return change


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
