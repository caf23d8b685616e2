"""Summaries: what changes when one is asked for, written, given up or dropped. Pure functions that return entries."""

from collections.abc import Iterator

from msgspec import UNSET
from msgspec.structs import replace

from bullpen.context.history import message_number
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Decided, Queued, Said, SummaryDropped
from bullpen.conversation.state import ConversationState
from bullpen.errors import NothingToSumUp
from bullpen.markers.grammar import DEFAULT_INTENT
from bullpen.markers.stripping import strip_all_markers
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.progress import Progress
from bullpen.routing.router import Route
from bullpen.routing.summaries import (
    AskedSummary,
    Summary,
    doubtful_citations,
    mark_of,
    newest,
    still_asked,
    with_dropped,
)
from bullpen.team.team import BULLPEN
from bullpen.text.clean import byte_length

SYSTEM = Speaker(role_id=BULLPEN, role_name=BULLPEN, type="system")
LAST_INTENT = DEFAULT_INTENT + 1
"""When nobody else is waiting."""


def asked_in(
    state: ConversationState, entry: Entry, asked: AskedSummary, member: str, notes: tuple[str, ...] = ()
) -> Entry:
    """Return the entry of a person's message that asks one member to answer, as one that asks it for a summary.

    The message goes to everyone: what is in it may be in the summary, which others are given later. It answers nothing
    that the member has asked.
    """
    message, said, progress = entry.message, entry.said, entry.change.progress
    if message is None or said is None or message.routing is None or progress is UNSET:
        raise TypeError("only a message can ask for a summary")
    message = replace(message, routing=replace(message.routing, resolved_addressees=()))
    progress = _with_asked(replace(progress, asks=state.progress.asks), entry.turns[0].id, asked)
    said = replace(said, message=message, reason=asks_for(member, asked), notes=notes)
    return replace(entry, message=message, said=said, change=replace(entry.change, progress=progress))


def asked_by_itself(
    state: ConversationState, member: str, asked: AskedSummary, why: str, *, message_id: str, at: int
) -> Entry:
    """Return the message that asks for a summary, since what somebody is not shown has grown too large."""
    turn = state.new_turn(member, message_id, intent=LAST_INTENT)
    message = ConversationMessage(
        id=message_id,
        content=f"{asks_for(member, asked)} {why}",
        speaker=SYSTEM,
        timestamp=at,
        routing=Routing(),
    )
    progress = replace(
        state.progress,
        turns_made=state.progress.turns_made + 1,
        message_number=max(state.progress.message_number, message_number(message_id)),
    )
    return Entry(
        at=at,
        message=message,
        turns=(turn,),
        change=Change(progress=_with_asked(progress, turn.id, asked)),
        said=Said(sequence=state.messages + 1, message=message),
        events=(Queued(turns=(turn,)),),
    )


def asks_for(member: str, asked: AskedSummary) -> str:
    """Return who is asked to sum up what, in a sentence."""
    continues = f", continuing summary #{asked.earlier}" if asked.earlier else ""
    return f"{member} is asked to sum up {asked.covered.words}{continues}."


def summed_up(
    state: ConversationState, progress: Progress, message: ConversationMessage, route: Route, turn_id: str
) -> tuple[ConversationMessage, Progress, Route]:
    """Return a reply as the summary that it is, what is remembered of it, and what people are told."""
    asked = progress.summing[turn_id]
    progress = replace(progress, summing={one: other for one, other in progress.summing.items() if one != turn_id})
    text = strip_all_markers(message.content)
    if not text:
        return message, progress, replace(route, notes=("It says nothing, so it is not used as a summary.",))
    summary = Summary(
        number=state.messages + 1,
        member=message.speaker.role_id,
        first=asked.first,
        last=asked.last,
        size=byte_length(text),
    )
    note = doubtful_citations(text, asked.covered)
    return (
        replace(message, extra={**(message.extra or {}), **mark_of(asked)}),
        replace(progress, summaries=(*progress.summaries, summary)),
        replace(
            route,
            reason=f"{asked.covered.summary_of.capitalize()}.",
            notes=(note,) if note else (),
        ),
    )


def dropped(state: ConversationState, person: str, number: int | None, *, message_id: str, at: int) -> Entry:
    """Take a summary out of all prompts from now on; without a number, the one that is used now.

    A message says so: what agents are given must not change without a trace.
    """
    kept = {one.number: one for one in state.progress.summaries if not one.dropped_by}
    latest = newest(kept.values())
    chosen = kept.get(number) if number is not None else latest
    if chosen is None:
        numbers = ", ".join(f"#{one}" for one in kept)
        there = f"There is {numbers}." if len(kept) == 1 else f"There are {numbers}."
        which = "" if number is None else f" #{number}"
        raise NothingToSumUp(f"There is no summary{which} to drop. {there if kept else ''}".strip())
    summaries = with_dropped(state.progress.summaries, chosen.number, person)
    message = ConversationMessage(
        id=message_id,
        content=f"{person} dropped summary #{chosen.number} of {chosen.covered.words}: no prompt contains it any more.",
        speaker=SYSTEM,
        timestamp=at,
        routing=Routing(),
    )
    progress = replace(
        state.progress,
        message_number=max(state.progress.message_number, message_number(message_id)),
        summaries=summaries,
    )
    return Entry(
        at=at,
        message=message,
        change=Change(progress=progress),
        said=Said(sequence=state.messages + 1, message=message),
        events=(SummaryDropped(number=chosen.number, first=chosen.first, last=chosen.last),),
    )


def follow(state: ConversationState, entry: Entry) -> Entry:
    """Return an entry with what it changes in summaries that are asked for: turns that are retried, or given up."""
    progress = state.progress if entry.change.progress is UNSET else entry.change.progress
    if not progress.summing:
        return entry
    moved = {_in_its_place(entry, turn): asked for turn, asked in progress.summing.items()}
    summing = still_asked(moved, frozenset(_alive(state, entry, progress)))
    if summing == progress.summing:
        return entry
    return replace(entry, change=replace(entry.change, progress=replace(progress, summing=summing)))


def _in_its_place(entry: Entry, turn: str) -> str:
    """Return the turn that has the place of another after an entry: a retry, or another member's."""
    is_about = any(isinstance(event, Decided) and event.turn_id == turn for event in entry.events)
    return entry.turns[0].id if entry.turns and (entry.retries == turn or is_about) else turn


def _alive(state: ConversationState, entry: Entry, progress: Progress) -> Iterator[str]:
    """Yield the turns that wait, run, or need a decision after an entry."""
    gone = {turn.id for turn in entry.drops}
    if entry.ends is not None and entry.message is not None:
        gone.add(entry.ends.turn_id)
    turns = (*state.queue.waiting, *state.running.values(), *entry.turns)
    yield from (turn.id for turn in turns if turn.id not in gone)
    yield from progress.undecided


def _with_asked(progress: Progress, turn_id: str, asked: AskedSummary) -> Progress:
    return replace(
        progress,
        summing={**progress.summing, turn_id: asked},
        summed_to=max(progress.summed_to, asked.last),
    )
