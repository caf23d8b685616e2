"""Turns that ended without a reply: what they had said and done, and where that belongs between the messages."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from bullpen.conversation.state import undecided_turn
from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.text.numbers import duration
from bullpen.turn_events import TextDelta
from bullpen.view.messages import ShownMessage
from bullpen.view.steps import MOST_SUMMARY, Steps, recorded_events

FOREVER = 2**62

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
    seconds: float
    reason: str
    """Why, in a sentence."""
    said: str = ""
    steps: Steps

    @property
    def heading(self) -> str:
        """How it ended, in a few words."""
        verb = {"failed": "failed", "cancelled": "was cancelled", "interrupted": "was interrupted"}[self.state]
        return f"turn {self.turn} {verb} after {duration(self.seconds)}"

    @property
    def step_lines(self) -> tuple[str, ...]:
        """What it did, a line for each step."""
        return tuple(
            f"{step.title}: {step.summary or step.output.strip()[:MOST_SUMMARY]} → {step.result}"
            if step.kind == "tool"
            else f"{step.title}: {step.summary or step.output.strip()[:MOST_SUMMARY]}"
            for step in self.steps
        )

    @property
    def summary(self) -> str:
        """How much there is to read, in a few words."""
        said = f"{len(self.said):,} characters said" if self.said else "nothing said"
        return f"{said} · {self.steps.summary}" if len(self.steps) else said


def unanswered_turns(
    store: Store, conversation_id: str, messages: Sequence[StoredMessage | ShownMessage]
) -> list[UnansweredTurn]:
    """Return the turns without a reply that belong after one of these messages, which follow each other."""
    if not messages:
        return []
    newer = store.messages(conversation_id, after=messages[-1].sequence, limit=1)
    first = messages[0].message.timestamp if messages[0].sequence > 1 else 0
    last = newer[0].message.timestamp - 1 if newer else FOREVER
    turns = store.unanswered(conversation_id, first=first, last=last)
    return [_shown(store, conversation_id, turn, _place(turn, messages)) for turn in turns]


def unanswered_turn(store: Store, conversation_id: str, turn_id: str) -> UnansweredTurn:
    """Return one turn without a reply that has just ended, after the newest message."""
    newest = store.messages(conversation_id, limit=1)
    return _shown(store, conversation_id, store.turn(conversation_id, turn_id), newest[0].sequence if newest else 0)


def in_order(
    messages: Iterable[ShownMessage], turns: Iterable[UnansweredTurn]
) -> Iterator[ShownMessage | UnansweredTurn]:
    """Yield messages and turns, each turn after its message."""
    waiting = list(turns)
    for message in messages:
        yield message
        yield from (turn for turn in waiting if turn.after == message.sequence)


def _place(turn: Turn, messages: Sequence[StoredMessage | ShownMessage]) -> int:
    """Return the last message that was there when a turn ended. Imported messages may have any time."""
    before = [one.sequence for one in messages if one.message.timestamp <= (turn.ended_at or 0)]
    return max(before, default=messages[0].sequence)


def _shown(store: Store, conversation_id: str, turn: Turn, after: int) -> UnansweredTurn:
    record = store.record(conversation_id, turn.id)
    events = recorded_events(record) if record is not None else []
    partial = turn.failure.partial_text if turn.failure is not None else ""
    return UnansweredTurn(
        turn=turn.id,
        member=turn.member,
        state=turn.state if turn.state in ("failed", "cancelled") else "interrupted",
        after=after,
        at=turn.ended_at or 0,
        seconds=((turn.ended_at or 0) - (turn.started_at or 0)) / 1000,
        reason=undecided_turn(turn).reason,
        said=partial or "".join(event.text for event in events if isinstance(event, TextDelta)),
        steps=Steps(events),
    )
