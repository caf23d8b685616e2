"""Blind rounds: who answers after a group is not told whose replies are whose, nor in which order. Plain data."""

import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from msgspec import Struct

from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import LETTERS

NOBODY_JUDGES = (
    "“blind” hides names from who answers after a group, and nobody does here. Write, for example, "
    "[NEXT: a & b, judge] blind."
)


class BlindRound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group that answers one message, and those after it who are not told who said what."""

    seed: str
    """What the order of the neutral names follows from."""
    step: int
    """The place of the group in its relay."""
    judged_at: int
    """The place of those who judge it."""

    def in_order(self, turns: Iterable[str]) -> dict[str, str]:
        """Return turns of the group with their neutral names, in a random order that stays the same."""
        shuffled = sorted(turns, key=lambda turn: blake2b(f"{self.seed}/{turn}".encode()).digest())
        return dict(zip(shuffled, _letters(len(shuffled)), strict=True))


BlindRounds = Mapping[str, BlindRound]
"""By the messages that the groups answer."""


def new_blind(turns: Sequence[WaitingTurn], *, is_blind: bool) -> dict[str, BlindRound]:
    """Return the blind round that a message begins, if it does."""
    steps = judged_steps(turn.step for turn in turns) if is_blind else None
    if steps is None:
        return {}
    step, judged_at = steps
    return {turns[0].message_id: BlindRound(seed=os.urandom(8).hex(), step=step, judged_at=judged_at)}


def judged_steps(of_turns: Iterable[int]) -> tuple[int, int] | None:
    """Return the step of the first group of a relay, and that of who answers next; None if there are no such."""
    steps = list(of_turns)
    for step in sorted(set(steps)):
        later = [other for other in steps if other > step]
        if steps.count(step) > 1 and later:
            return step, min(later)
    return None


def blind_of(rounds: BlindRounds, turn: WaitingTurn) -> BlindRound | None:
    """Return the round that a turn judges."""
    found = rounds.get(turn.message_id)
    return found if found is not None and turn.step == found.judged_at else None


def _letters(count: int) -> list[str]:
    return [LETTERS[number] if number < len(LETTERS) else f"A{number}" for number in range(count)]
