"""What a class of torture is, and what comes out of it."""

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Size = Literal["small", "full"]

DEFAULT_SEED = 6
MOST_SHOWN = 20


class Outcome(Struct, frozen=True, kw_only=True):
    """What was tried, how often, and what went wrong."""

    tried: int
    unit: str
    """What was counted: power cuts, for example."""
    failures: tuple[str, ...] = ()
    """Each broken promise, in a sentence that is enough to see it again."""
    figures: dict[str, int] = {}
    """What else was counted, so that a run that tried nothing interesting can be told from one that did."""
    skipped: str = ""
    """Why nothing could be tried here, if so."""


class Torture(Struct, frozen=True, kw_only=True):
    """One class of torture."""

    name: str
    does: str
    """What is done, in a sentence for the page."""
    promise: str
    """What must hold after each."""
    run: Callable[[Size, int], Outcome]
    """Gets a size and a seed; the same two do the same again."""
    fault: str
    """What is broken on purpose to prove that this class would notice."""
    run_with_fault: Callable[[int], Outcome]
    """The small size with that fault planted. It must find failures."""
    seen_as: str
    """A pattern for what that fault leads to. Failures of any other kind do not mean that it was caught."""
    order: int = 100
    """Its place on the page."""

    def catches_its_fault(self, seed: int) -> bool:
        """Plant the fault, and return whether what was found is what it leads to."""
        found = self.run_with_fault(seed).failures
        return any(re.search(self.seen_as, failure, re.DOTALL) for failure in found)


def shown(failures: tuple[str, ...]) -> str:
    """Return failures for a terminal or an assertion, the first ones only."""
    more = f"\n… and {len(failures) - MOST_SHOWN:,} more" if len(failures) > MOST_SHOWN else ""
    return "\n".join(failures[:MOST_SHOWN]) + more
