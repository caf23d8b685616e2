"""Nodes and workers on a simulated network, as proofs/simulation plays them; simulated_trials.py has it played."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from proofs.simulation.schedule import Size as WorldSize
from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import ALL_FOUND, in_words
from proofs.torture.simulated_mistakes import MISTAKES

SCHEDULES: dict[Size, int] = {"small": 100, "full": 10_000}
SCHEDULES_WITH_MISTAKE = 300
SMALL_WORLD = WorldSize()
LARGE_WORLD = WorldSize(
    nodes=100, workers=10_000, conversations=100_000, words=1, seconds=60, mishaps=200, slowest_turn=8, losses=False
)
AT_ONCE = 2
NAMES: dict[str, str] = {
    "kill": "nodes and workers killed",
    "freeze": "nodes and workers frozen",
    "cut off": "nodes and workers cut off",
    "deliver twice": "orders delivered twice",
}


def run(size: Size, seed: int) -> Outcome:
    """Play all schedules, and at full size a large one, too."""
    count = SCHEDULES[size] // AT_ONCE
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda part: found_by(seed + part * count, count, SMALL_WORLD), range(AT_ONCE)))
    counts = sum((Counter(part["counts"]) for part in found), Counter[str]())
    figures = {_shown(name): number for name, number in sorted(counts.items())}
    if size == "full":
        found.append(found_by(seed, 1, LARGE_WORLD))
        figures |= {
            f"in one world of 100 nodes, 10,000 workers and 100,000 conversations: {_shown(name)}": number
            for name, number in sorted(found[-1]["counts"].items())
        }
    failures = tuple(problem for part in found for problem in part["problems"])
    return Outcome(tried=SCHEDULES[size], unit="schedules", failures=failures, figures=figures)


def _shown(name: str) -> str:
    return NAMES.get(name, name)


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake, until it is found."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = dict(zip(MISTAKES, threads.map(lambda name: seen(name, seed), MISTAKES), strict=True))
    missed = [name for name, problem in found.items() if not problem]
    failures = tuple(f"missed: {name}" for name in missed) or (ALL_FOUND,)
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=failures)


def seen(mistake: str, seed: int) -> str:
    """Return what a mistake was seen as; nothing if it was not, or as something else."""
    problems: list[str] = found_by(seed, SCHEDULES_WITH_MISTAKE, SMALL_WORLD, mistake)["problems"]
    return next((one for one in problems if re.search(MISTAKES[mistake][-1], one)), "")


def found_by(first: int, count: int, world: WorldSize, mistake: str = "") -> dict[str, Any]:
    """Return what so many schedules found, with a mistake or without one."""
    return tortured("simulated_trials", str(first), str(count), msgspec.json.encode(world).decode(), mistake)


TORTURE = Torture(
    name="simulated machines",
    does=(
        "Nodes, workers and people on a simulated network, clock and database, with the real scheduler, claim and "
        "fence; what the product does in SQL is a model, which a test compares with PostgreSQL. In each schedule of a "
        "world of 3 nodes and 3 workers, what is sent is delayed, lost and doubled, nodes and workers are killed, "
        "frozen and cut off, orders are delivered twice, and turns are cancelled. One world has 100 nodes, 10,000 "
        "workers and 100,000 conversations. The seed decides everything, so the same seed does the same again."
    ),
    promise=(
        "at every step: who writes in a conversation is its owner, no turn runs twice or has two ends, no turns of one "
        "member overlap (but one that was interrupted because its worker was given up may not have stopped, or may "
        "begin until that worker hears of it), and each step of a relay begins after the one before it. And after it "
        "has healed: everything that was said is acknowledged and stored once, in its order, and no turn is left open."
    ),
    run=run,
    fault=in_words(MISTAKES),
    run_with_fault=run_with_fault,
    seen_as=ALL_FOUND,
    order=8,
)
