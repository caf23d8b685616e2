"""Random teams with random failures; failing_trials.py runs them."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from proofs.torture.failing_mistakes import MISTAKES
from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture

TEAMS: dict[Size, int] = {"small": 10, "full": 1000}
TEAMS_WITH_MISTAKE = 25
AT_ONCE = 2


def run(size: Size, seed: int) -> Outcome:
    """Let teams fail, in several processes if they are many."""
    count = AT_ONCE if size == "full" else 1
    with ThreadPoolExecutor(AT_ONCE) as threads:
        given = ((TEAMS[size] // count, seed * count + part) for part in range(count))
        found = list(threads.map(lambda one: found_by(*one), given))
    counts = sum((Counter(part["counts"]) for part in found), Counter[str]())
    failures = tuple(problem for part in found for problem in part["problems"])
    return Outcome(tried=TEAMS[size], unit="teams", failures=failures, figures=dict(sorted(counts.items())))


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda name: seen(name, seed), MISTAKES))
    missed = [name for name, problem in zip(MISTAKES, found, strict=True) if not problem]
    failures = () if missed else (f"all {len(MISTAKES)} mistakes were found; {found[0]}",)
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=failures or tuple(f"missed: {one}" for one in missed))


def seen(mistake: str, seed: int) -> str:
    """Return what a mistake was seen as; nothing if it was not, or as something else."""
    problems = found_by(TEAMS_WITH_MISTAKE, seed, mistake)["problems"]
    return next((problem for problem in problems if re.search(MISTAKES[mistake][-1], problem)), "")


def found_by(teams: int, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what so many teams found, with a mistake or without one."""
    return tortured("failing_trials", str(teams), str(seed), mistake, in_memory=True)


TORTURE = Torture(
    name="random failures",
    does=(
        "In random teams, with random stand-ins, permissions, limits and budgets, agents fail at random: out of quota "
        "with and without a time at which it comes back, overloaded, not signed in, not installed, crashed, too slow; "
        "some after they have used a tool or changed a file. Others answer, hand over, thank or only say that "
        "something failed. A person retries, skips, raises, continues or drops what is left, and conversations are "
        "closed and opened on the way."
    ),
    promise=(
        "every turn ends in exactly one state, and is answered and taken over at most once; no program is asked while "
        "it rests; nobody takes over a turn that changed files without a person's yes; no turn begins once a limit "
        "or a budget is reached; and nobody is woken by a failure, a stand-in's announcement or a thank-you."
    ),
    run=run,
    fault=f"{len(MISTAKES)} mistakes, one after the other: " + "; ".join(MISTAKES) + ". Each must be found.",
    run_with_fault=run_with_fault,
    seen_as=f"all {len(MISTAKES)} mistakes were found",
    order=16,
)
