"""ShownCards: the decisions that a person has had before their eyes for long enough to mean one of them."""

from collections.abc import Sequence
from typing import Final, Literal

from bullpen.clock import monotonic
from bullpen.view.choices import Choice, Decision

SETTLED_SECONDS = 0.5
"""A key that comes sooner was meant for what was there before."""
TooEarly = Literal["too early"]
TOO_EARLY: Final = "too early"
"""Of a digit that comes sooner: it neither answers nor writes, for a draft would take the digits from the card."""


class ShownCards:
    """What one door shows, the most urgent first, and since when."""

    def __init__(self) -> None:
        self._cards: tuple[Decision, ...] = ()
        self._since: dict[tuple[object, ...], float] = {}
        self._first_since = 0.0
        """Since when the first card is the first one: keys are about that one."""

    def show(self, cards: Sequence[Decision]) -> None:
        """Note what is on the screen now."""
        now = monotonic()
        before, self._cards = self.first, tuple(cards)
        self._since = {_same(card): self._since.get(_same(card), now) for card in cards}
        if self.first is None or before is None or _same(before) != _same(self.first):
            self._first_since = now

    def hide(self) -> None:
        """Note that something else covered the cards."""
        self.show(())

    @property
    def first(self) -> Decision | None:
        """The card that keys are about."""
        return self._cards[0] if self._cards else None

    @property
    def is_settled(self) -> bool:
        """Whether keys are about the first card by now."""
        return self._is_settled(0.0)

    def _is_settled(self, age: float) -> bool:
        return monotonic() - age - self._first_since >= SETTLED_SECONDS

    @property
    def settled(self) -> tuple[Decision, ...]:
        """What a person may mean who begins to write now."""
        now = monotonic()
        return tuple(card for card in self._cards if now - self._since[_same(card)] >= SETTLED_SECONDS)

    def choice(self, key: str, *, age: float = 0.0) -> Choice | TooEarly | None:
        """Return the answer that a key chooses that was pressed `age` seconds ago; None: it writes, as any other."""
        if self.first is None:
            return None
        if not self._is_settled(age):
            return TOO_EARLY if key.isdecimal() and self.first.keys else None
        return next((choice for choice in self.first.choices if choice.key and choice.key == key), None)


def _same(card: Decision) -> tuple[object, ...]:
    return (*card.key, card.text, card.shown, card.keys)
