"""TurnQueue: the turns that wait, and which may begin. Plain data, so that it can be stored and restored as it is."""

from collections.abc import Iterable

from msgspec import Struct

from bullpen.context.markers import DEFAULT_INTENT


class WaitingTurn(Struct, frozen=True, kw_only=True):
    """One member's turn to answer."""

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
        self._waiting: list[WaitingTurn] = []
        for turn in waiting:
            self.add(turn)

    @property
    def waiting(self) -> tuple[WaitingTurn, ...]:
        """Every turn that waits, the next one first."""
        return tuple(self._waiting)

    def add(self, turn: WaitingTurn) -> None:
        """Put a turn behind those of its intent. One turn per member and message: the stronger intent wins."""
        for index, other in enumerate(self._waiting):
            if (other.member, other.message_id) == (turn.member, turn.message_id):
                if other.intent <= turn.intent:
                    return
                del self._waiting[index]
                break
        behind = [index for index, other in enumerate(self._waiting) if other.intent <= turn.intent]
        self._waiting.insert(behind[-1] + 1 if behind else 0, turn)

    def drop(self, member: str | None = None) -> tuple[WaitingTurn, ...]:
        """Take a member's turns out of the queue, or all; return them."""
        dropped = tuple(turn for turn in self._waiting if member is None or turn.member == member)
        self._waiting = [turn for turn in self._waiting if turn not in dropped]
        return dropped

    def move_first(self, turn_id: str) -> None:
        """Let a turn begin next, whatever its intent."""
        self._waiting.sort(key=lambda turn: turn.id != turn_id)

    def take_next(self, running: Iterable[WaitingTurn] = ()) -> tuple[WaitingTurn, ...]:
        """Take out and return the turns that may begin now: the first group, once nothing else runs.

        A group is what one message asked for in one step of its relay: its members answer in parallel.
        """
        if tuple(running) or not self._waiting:
            return ()
        first = self._waiting[0]
        group = tuple(turn for turn in self._waiting if _group(turn) == _group(first))
        self._waiting = [turn for turn in self._waiting if turn not in group]
        return group


def _group(turn: WaitingTurn) -> tuple[str, int, int]:
    return turn.message_id, turn.step, turn.intent
