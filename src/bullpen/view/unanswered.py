"""Turns that ended without a reply: what they had said and done, and where that belongs between the messages."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct

from bullpen.conversation.recorded_events import recorded_events
from bullpen.conversation.state import undecided_turn
from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.text.numbers import duration
from bullpen.turn_events import TextDelta
from bullpen.view.activity import ASLEEP, FAILED, Activity
from bullpen.view.steps import MOST_SUMMARY, Step, Steps

MOST_AT_ONCE = 20
"""Turns after one message that are shown, the latest: an agent may fail a thousand times at the same message."""
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

    @property
    def signed(self) -> str:
        """Its sign, and how it ended."""
        return f"{self.activity.sign} {self.heading}"

    @property
    def activity(self) -> Activity:
        """The state whose sign and colour it has."""
        return ended_activity(self.state)


def ended_activity(state: str) -> Activity:
    """Return the state of a turn that has ended without a reply: what somebody cancelled has not failed."""
    return ASLEEP if state == "cancelled" else FAILED


def unanswered_turns(
    store: Store, conversation_id: str, messages: Sequence[StoredMessage], *, most: int | None = MOST_AT_ONCE
) -> list[UnansweredTurn]:
    """Return the turns without a reply that belong after one of these messages, which follow each other.

    `most` is how many at most come after each message, the latest; None means all.
    """
    if not messages:
        return []
    first = messages[0].sequence if messages[0].sequence > 1 else 0
    turns = store.unanswered(conversation_id, first=first, last=messages[-1].sequence)
    groups = groupby(turns, key=lambda turn: max(turn.after_message or 0, messages[0].sequence))
    return [
        _shown(store, conversation_id, turn, after)
        for after, group in groups
        for turn in (list(group) if most is None else list(group)[-most:])
    ]


def unanswered_turn(store: Store, conversation_id: str, turn_id: str) -> UnansweredTurn:
    """Return a turn that has ended without a reply."""
    turn = store.turn(conversation_id, turn_id)
    return _shown(store, conversation_id, turn, turn.after_message or 0)


def _shown(store: Store, conversation_id: str, turn: Turn, after: int) -> UnansweredTurn:
    record = store.record(conversation_id, turn.id, prompt=False)
    events = recorded_events(record) if record is not None else []
    steps = Steps(events)
    partial = turn.failure.partial_text if turn.failure is not None else ""
    said = partial or "".join(event.text for event in events if isinstance(event, TextDelta))
    state: EndedAs = turn.state if turn.state in ("failed", "cancelled") else "interrupted"
    seconds = ((turn.ended_at or 0) - (turn.started_at or 0)) / 1000
    # When bullpen was killed, is known only if it was seen alive after the turn had begun.
    after_time = f" after {duration(seconds)}" if seconds > 0 or state != "interrupted" else ""
    much = f"{len(said):,} characters said" if said else "nothing said"
    return UnansweredTurn(
        turn=turn.id,
        member=turn.member,
        state=state,
        after=after,
        at=turn.ended_at or 0,
        heading=f"turn {turn.id} {ENDED[state]}{after_time}",
        summary=f"{much} · {steps.summary}" if len(steps) else much,
        reason=undecided_turn(turn).reason,
        said=said,
        done=tuple(map(_line, steps)),
    )


def _line(step: Step) -> str:
    about = step.summary or step.output.strip()[:MOST_SUMMARY]
    result = f" → {step.result}" if step.kind == "tool" and not step.is_open else ""
    return f"{step.title}: {about}{result}"
