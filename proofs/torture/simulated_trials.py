"""Schedules of a simulation: `python -m proofs.torture.simulated_trials FIRST COUNT SIZE MISTAKE FOLDER`.

SIZE is of one schedule, as JSON. Prints what it found as JSON; with a mistake, at the first broken promise.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from proofs.torture.simulated_mistakes import plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[4], Path(sys.argv[5]))

from proofs.simulation.schedule import Size, play


def played(first: int, count: int, size: Size, *, to_the_first: bool) -> dict[str, Any]:
    """Play so many schedules, each with a seed of its own."""
    counts: Counter[str] = Counter()
    problems = []
    for seed in range(first, first + count):
        one = play(seed, size)
        counts.update(one.counts)
        counts["steps"] += one.steps
        problems += [one.problem] if one.problem else []
        if problems and to_the_first:
            break
    return {"counts": counts, "problems": problems}


if __name__ == "__main__":
    first_, count_, size_, mistake_, _ = sys.argv[1:]
    print(
        json.dumps(played(int(first_), int(count_), msgspec.json.decode(size_, type=Size), to_the_first=bool(mistake_)))
    )
