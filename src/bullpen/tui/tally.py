"""Tally: what each member has taken so far: turns, tokens, money, failures."""

from collections.abc import Iterable

from msgspec import Struct

from bullpen.store.base import Store
from bullpen.turn_events import Failed, Usage

# Adding up more turns than this would keep the store busy for a second; then we count from now on.
MOST_TURNS = 20_000


class Taken(Struct, kw_only=True):
    """What one member has taken."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    failures: int = 0
    last_failure: str = ""

    def add(self, usage: Usage | None, failure: Failed | None) -> None:
        """Count a turn that has ended."""
        self.turns += 1
        if usage is not None:
            self.tokens += usage.input_tokens + usage.output_tokens
            self.cost_usd += usage.cost_usd or 0.0
        if failure is not None and failure.kind != "cancelled":
            self.failures += 1
            self.last_failure = failure.message


def taken_so_far(store: Store, conversation_id: str) -> dict[str, Taken]:
    """Return what every member has taken in all turns that are stored."""
    taken: dict[str, Taken] = {}
    for turn in store.turns(conversation_id):
        if turn.state in ("done", "failed", "cancelled", "interrupted"):
            taken.setdefault(turn.member, Taken()).add(turn.usage, turn.failure)
    return taken


def total(taken: Iterable[Taken]) -> Taken:
    """Return the sum."""
    whole = Taken()
    for part in taken:
        whole.turns += part.turns
        whole.tokens += part.tokens
        whole.cost_usd += part.cost_usd
        whole.failures += part.failures
    return whole
