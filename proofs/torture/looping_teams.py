"""Teams that would never stop; loops.py makes them."""

from typing import Any

from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture

SIZES: dict[Size, int] = {"small": 20, "full": 1000}


def run(size: Size, seed: int) -> Outcome:
    """Let each team loop until something stops it."""
    return _outcome(tortured("loops", str(SIZES[size]), str(seed)))


def run_with_fault(seed: int) -> Outcome:
    """Do it without caps."""
    return _outcome(tortured("planted", "loops", "1", "1"))


def _outcome(found: dict[str, Any]) -> Outcome:
    stops = {f"stopped: … {words}": count for words, count in sorted(found["stops"].items())}
    figures = {"killed on the way": found["killed"], "turns": found["turns"], **stops}
    return Outcome(tried=found["teams"], unit="teams", failures=tuple(found["problems"]), figures=figures)


TORTURE = Torture(
    name="teams that loop",
    does="In random teams every reply hands over to somebody; one in five is killed on the way and opened again.",
    promise="a cap ends every one of them, twice in a row, and nothing goes on by itself after a kill.",
    run=run,
    fault="nothing is capped.",
    seen_as="does not stop",
    run_with_fault=run_with_fault,
    order=15,
)
