"""Fair comparisons: the candidates alternate, and each result is a median."""

import gc
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import median
from time import perf_counter
from typing import TypeVar

Name = TypeVar("Name")
Run = Callable[[], object]
Clock = Callable[[], float]


def seconds(run: Run, repeats: int = 1, clock: Clock = perf_counter) -> float:
    """Return how long one call takes. The result of the last call is freed after the measurement."""
    start = clock()
    for _ in range(repeats):
        result = run()
    elapsed = clock() - start
    del result
    return elapsed / repeats


def medians(
    candidates: Mapping[Name, Run], *, rounds: int, repeats: int = 1, clock: Clock = perf_counter
) -> dict[Name, float]:
    """Return the median seconds of each candidate. They run in turn, so that a busy machine slows all of them alike."""
    times: dict[Name, list[float]] = {name: [] for name in candidates}
    for run in candidates.values():
        run()
    gc.collect()
    order = list(candidates)
    random = Random(0)
    for _ in range(rounds):
        # The previous candidate affects the caches of processor and allocator, so the order changes.
        random.shuffle(order)
        for name in order:
            times[name].append(seconds(candidates[name], repeats, clock))
    return {name: median(taken) for name, taken in times.items()}


def first_call(prepare: Callable[[], Run], *, rounds: int, clock: Clock = perf_counter) -> float:
    """Return the median seconds of the first call of something prepared again each time."""
    times = []
    for _ in range(rounds):
        run = prepare()
        gc.collect()
        times.append(seconds(run, clock=clock))
    return median(times)


def part(taken: Sequence[float], share: float) -> float:
    """Return the value that this share of all values does not exceed: 0.5 is the median, 0.99 that of 99 of 100."""
    return sorted(taken)[min(int(len(taken) * share), len(taken) - 1)]
