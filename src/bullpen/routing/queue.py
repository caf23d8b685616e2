"""TurnQueue: the waiting turns in their order. Plain data that can be stored and restored."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from bullpen.markers.grammar import DEFAULT_INTENT

PUT_FIRST = 0
"""The intent of a turn that a person moved to the front: lower than any intent in a marker."""


class WaitingTurn(Struct, frozen=True, kw_only=True):
    """One member's turn to answer. A person's turn holds up the rest of the relay until the person has spoken."""

    id: str
    member: str
    message_id: str
    """The message that asked for it."""
    intent: int = DEFAULT_INTENT
    step: int = 0
    """The place in a relay. Turns of one message and one step run in parallel; the next step starts after them."""


class TurnQueue:
    """Turns in their order: by intent, then first in, first out. See obstacles.py for which of them may begin.

    An intent moves a turn past those of other messages, never past an earlier step of its own relay.
    """

    def __init__(self, waiting: Iterable[WaitingTurn] = ()) -> None:
        self._arrived = list(waiting)
        self._waiting = _in_order(self._arrived)

    @property
    def waiting(self) -> tuple[WaitingTurn, ...]:
        """Every waiting turn, the next one first."""
        return tuple(self._waiting)

    def add(self, turns: Iterable[WaitingTurn]) -> None:
        """Add each turn after the others of its intent."""
        self._arrived += turns
        self._waiting = _in_order(self._arrived)

    def put_first(self, turns: Iterable[WaitingTurn]) -> None:
        """Move turns to the front, in this order, regardless of their intents."""
        first = [_with_intent(turn, PUT_FIRST) for turn in {turn.id: turn for turn in turns}.values()]
        self.remove(turn.id for turn in first)
        self._arrived[:0] = first
        self._waiting = _in_order(self._arrived)

    def remove(self, turn_ids: Iterable[str]) -> tuple[WaitingTurn, ...]:
        """Remove turns from the queue and return them."""
        ids = frozenset(turn_ids)
        removed = tuple(turn for turn in self._waiting if turn.id in ids)
        # The next step of a relay has its own intent from now on.
        self._arrived = [turn for turn in self._arrived if turn.id not in ids]
        self._waiting = _in_order(self._arrived)
        return removed

    def of(self, member: str | None = None) -> tuple[WaitingTurn, ...]:
        """Return a member's waiting turns, or everyone's."""
        return tuple(turn for turn in self._waiting if member is None or turn.member == member)


def _in_order(turns: Sequence[WaitingTurn]) -> list[WaitingTurn]:
    """Return turns by intent; a step of a relay is at most as urgent as the steps before it that still wait."""
    intents: dict[str, int] = {}
    latest: dict[str, int] = {}
    for turn in sorted(turns, key=lambda turn: (turn.step, turn.intent)):
        latest[turn.message_id] = intents[turn.id] = max(turn.intent, latest.get(turn.message_id, PUT_FIRST))
    # Who moved a turn to the front meant it, also where a step before it waits.
    return sorted(turns, key=lambda turn: intents[turn.id] if turn.intent != PUT_FIRST else PUT_FIRST)


def _with_intent(turn: WaitingTurn, intent: int) -> WaitingTurn:
    return WaitingTurn(id=turn.id, member=turn.member, message_id=turn.message_id, intent=intent, step=turn.step)
