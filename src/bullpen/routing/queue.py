"""TurnQueue: the turns that wait, and which may begin. Plain data, so that it can be stored and restored as it is."""

from collections.abc import Collection, Iterable

from msgspec import Struct

from bullpen.markers.grammar import DEFAULT_INTENT

PUT_FIRST = 0
"""The intent of a turn that a person moved to the front: before every intent that can be written."""


class WaitingTurn(Struct, frozen=True, kw_only=True):
    """One member's turn to answer. A person's turn holds up the relay behind it until the person has spoken."""

    id: str
    member: str
    message_id: str
    """The message that asked for it."""
    intent: int = DEFAULT_INTENT
    step: int = 0
    """The place in a relay. Turns of one message and one step run in parallel; the next step begins after them."""


class TurnQueue:
    """Turns in the order in which they will begin: by intent, then first in, first out."""

    def __init__(self, waiting: Iterable[WaitingTurn] = ()) -> None:
        self._waiting = sorted(waiting, key=lambda turn: turn.intent)

    @property
    def waiting(self) -> tuple[WaitingTurn, ...]:
        """Every turn that waits, the next one first."""
        return tuple(self._waiting)

    def add(self, turns: Iterable[WaitingTurn]) -> None:
        """Put turns behind those of their intents."""
        self._waiting = sorted([*self._waiting, *turns], key=lambda turn: turn.intent)

    def put_first(self, turns: Iterable[WaitingTurn]) -> None:
        """Let turns begin before all others, in this order, whatever their intents were."""
        first = [_with_intent(turn, PUT_FIRST) for turn in turns]
        self.remove(turn.id for turn in first)
        self._waiting[:0] = first

    def remove(self, turn_ids: Iterable[str]) -> tuple[WaitingTurn, ...]:
        """Take turns out of the queue; return them."""
        gone = frozenset(turn_ids)
        removed = tuple(turn for turn in self._waiting if turn.id in gone)
        self._waiting = [turn for turn in self._waiting if turn.id not in gone]
        return removed

    def of(self, member: str | None = None) -> tuple[WaitingTurn, ...]:
        """Return a member's waiting turns, or all."""
        return tuple(turn for turn in self._waiting if member is None or turn.member == member)

    def next_group(
        self, *, people: Collection[str] = (), held: Collection[str] = (), undecided: Iterable[WaitingTurn] = ()
    ) -> tuple[WaitingTurn, ...]:
        """Return the turns that may begin together: those of one message, one step of its relay, and one intent.

        A person's turn never begins, nor does one that is held. What stands behind such a turn in its relay waits, and
        so does what stands behind an undecided one: it has failed, and nobody has said yet what to do about it.
        """
        stuck = [turn for turn in self._waiting if turn.member in people or turn.id in held]
        standing = {turn.id for turn in stuck}
        blocked = _first_steps([*stuck, *undecided])
        able = [
            turn
            for turn in self._waiting
            if turn.id not in standing and turn.step <= blocked.get(turn.message_id, turn.step)
        ]
        return tuple(turn for turn in able if _group(turn) == _group(able[0]))


def _first_steps(turns: Iterable[WaitingTurn]) -> dict[str, int]:
    """Return the first step of each message's relay among these turns."""
    steps: dict[str, int] = {}
    for turn in turns:
        steps[turn.message_id] = min(steps.get(turn.message_id, turn.step), turn.step)
    return steps


def _group(turn: WaitingTurn) -> tuple[str, int, int]:
    return turn.message_id, turn.step, turn.intent


def _with_intent(turn: WaitingTurn, intent: int) -> WaitingTurn:
    return WaitingTurn(id=turn.id, member=turn.member, message_id=turn.message_id, intent=intent, step=turn.step)
