"""Turns that ended without a reply: what they had said and done, and where that belongs between the messages."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from bullpen.conversation.state import undecided_turn
from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.text.numbers import duration
from bullpen.turn_events import TextDelta
from bullpen.view.steps import MOST_SUMMARY, Step, Steps, recorded_events

FOREVER = 2**62
MOST_AT_ONCE = 100
"""Turns in a row that are shown, the latest: an agent may fail a thousand times at the same message."""
ENDED = {"failed": "failed", "cancelled": "was cancelled", "interrupted": "was interrupted"}

EndedAs = Literal["failed", "cancelled", "interrupted"]


class UnansweredTurn(Struct, frozen=True, kw_only=True):
    """A turn that failed, was cancelled, or was interrupted when bullpen stopped."""

    turn: str
    member: str
    state: EndedAs
    after: int
    """The number of the message that it comes after."""
    at: int
    """When it ended."""
    heading: str
    """How it ended, in a few words."""
    summary: str
    """How much it had said and done, in a few words."""
    reason: str
    """Why it ended, in a sentence."""
    said: str = ""
    done: tuple[str, ...] = ()
    """What it did, a line for each step."""


def unanswered_turns(store: Store, conversation_id: str, messages: Sequence[StoredMessage]) -> list[UnansweredTurn]:
    """Return the turns without a reply that belong after one of these messages, which follow each other."""
    if not messages:
        return []
    newer = store.messages(conversation_id, after=messages[-1].sequence, limit=1)
    first = messages[0].message.timestamp if messages[0].sequence > 1 else 0
    last = newer[0].message.timestamp - 1 if newer else FOREVER
    turns = store.unanswered(conversation_id, first=first, last=last)[-MOST_AT_ONCE:]
    return [_shown(store, conversation_id, turn, _place(turn, messages)) for turn in turns]


def unanswered_turn(store: Store, conversation_id: str, turn_id: str) -> UnansweredTurn:
    """Return a turn that has just ended without a reply, after the newest message."""
    newest = store.messages(conversation_id, limit=1)
    return _shown(store, conversation_id, store.turn(conversation_id, turn_id), newest[0].sequence if newest else 0)


def _place(turn: Turn, messages: Sequence[StoredMessage]) -> int:
    """Return the last message that was there when a turn ended. Imported messages may have any time."""
    before = [one.sequence for one in messages if one.message.timestamp <= (turn.ended_at or 0)]
    return max(before, default=messages[0].sequence)


def _shown(store: Store, conversation_id: str, turn: Turn, after: int) -> UnansweredTurn:
    record = store.record(conversation_id, turn.id)
    events = recorded_events(record) if record is not None else []
    steps = Steps(events)
    partial = turn.failure.partial_text if turn.failure is not None else ""
    said = partial or "".join(event.text for event in events if isinstance(event, TextDelta))
    state: EndedAs = turn.state if turn.state in ("failed", "cancelled") else "interrupted"
    seconds = ((turn.ended_at or 0) - (turn.started_at or 0)) / 1000
    much = f"{len(said):,} characters said" if said else "nothing said"
    return UnansweredTurn(
        turn=turn.id,
        member=turn.member,
        state=state,
        after=after,
        at=turn.ended_at or 0,
        heading=f"turn {turn.id} {ENDED[state]} after {duration(seconds)}",
        summary=f"{much} · {steps.summary}" if len(steps) else much,
        reason=undecided_turn(turn).reason,
        said=said,
        done=tuple(map(_line, steps)),
    )


def _line(step: Step) -> str:
    about = step.summary or step.output.strip()[:MOST_SUMMARY]
    result = f" → {step.result}" if step.kind == "tool" and not step.is_open else ""
    return f"{step.title}: {about}{result}"
