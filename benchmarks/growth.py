"""Whether anything became super-linear: ratios between two sizes of the same thing, not times.

Processor time, the best of several rounds in turn, and more rounds for cases that seem too slow: a busy machine makes
some rounds slow, but an algorithm that grows too fast does so in every round.
"""

import gc
from collections.abc import Callable, Iterable
from math import ceil
from time import monotonic, process_time

from msgspec import Struct

from benchmarks.measure import Clock, Run, seconds

FACTOR = 4
"""The larger size relative to the smaller one."""
LINEAR, FLAT = 6.0, 2.5
"""The ratios that are allowed. What is quadratic takes 16 times as long, and what is linear 4."""
FEWEST_ROUNDS, MOST_ROUNDS = 2, 30
ROUND_SECONDS = 0.002
"""A shorter run is repeated, so that it can be measured."""


class Case(Struct, frozen=True):
    """Something to do in any size."""

    name: str
    size: int
    prepare: Callable[[int], Run]
    limit: float = LINEAR


class Growth(Struct, frozen=True):
    """How a case grows."""

    name: str
    ratio: float
    limit: float

    @property
    def is_good(self) -> bool:
        """Whether it grows no faster than allowed."""
        return self.ratio <= self.limit

    def __str__(self) -> str:
        return f"{'ok   ' if self.is_good else 'GROWS'} {self.ratio:6.2f} (at most {self.limit:g})  {self.name}"


def growth(case: Case, clock: Clock = process_time) -> Growth:
    """Measure a case in both sizes, until it is good or has no tries left."""
    runs = (case.prepare(case.size), case.prepare(FACTOR * case.size))
    repeats = [max(1, ceil(ROUND_SECONDS / max(seconds(run, clock=clock), 1e-6))) for run in runs]
    best = [float("inf"), float("inf")]
    gc.collect()
    gc.disable()
    try:
        for round_number in range(1, MOST_ROUNDS + 1):
            for place, run in enumerate(runs):
                best[place] = min(best[place], seconds(run, repeats[place], clock))
            found = Growth(case.name, best[1] / best[0], case.limit)
            if round_number >= FEWEST_ROUNDS and found.is_good:
                break
    finally:
        gc.enable()
    return found


def check(cases: Iterable[Case], clock: Clock = process_time) -> list[Growth]:
    """Print how everything grows, and return what grows too fast."""
    began = monotonic()
    found = []
    for case in cases:
        found.append(growth(case, clock))
        print(found[-1], flush=True)
    bad = [one for one in found if not one.is_good]
    print(f"{len(found)} things in {FACTOR} times the size, in {monotonic() - began:.0f} s: {len(bad)} grow too fast.")
    return bad
