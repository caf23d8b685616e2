"""Agents that look up all they can; looking_up_trials.py lets them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from proofs.torture.kill_nine import tortured
from proofs.torture.looking_up_mistakes import LEAK, MISTAKES
from proofs.torture.outcome import Outcome, Size, Torture

CONVERSATIONS: dict[Size, int] = {"small": 20, "full": 10_000}
"""Half of them are forks of the others."""
CONVERSATIONS_WITH_MISTAKE = 20
AT_ONCE = 2
PART = 500
"""Conversations of one process."""


def run(size: Size, seed: int) -> Outcome:
    """Let them look, in several processes if there are many conversations."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda one: found_by(*one), parts(size, seed)))
    return outcome_of(size, found)


def parts(size: Size, seed: int) -> list[tuple[int, int]]:
    """Return how many conversations each process has, and its seed."""
    count = -(-CONVERSATIONS[size] // PART)
    return [(CONVERSATIONS[size] // count, seed * count + part) for part in range(count)]


def outcome_of(size: Size, found: Sequence[Mapping[str, Any]]) -> Outcome:
    """Return what the processes found together."""
    counts = sum((Counter(part["counts"]) for part in found), Counter[str]())
    failures = tuple(problem for part in found for problem in part["problems"])
    return Outcome(
        tried=CONVERSATIONS[size], unit="conversations", failures=failures, figures=dict(sorted(counts.items()))
    )


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda name: seen(name, seed), MISTAKES))
    missed = [name for name, problem in zip(MISTAKES, found, strict=True) if not problem]
    failures = () if missed else (f"all {len(MISTAKES)} mistakes were found; {found[0]}",)
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=failures or tuple(f"missed: {one}" for one in missed))


def seen(mistake: str, seed: int) -> str:
    """Return what a mistake was seen as; nothing if it was not, or as something else."""
    problems = found_by(CONVERSATIONS_WITH_MISTAKE, seed, mistake)["problems"]
    return next((problem for problem in problems if re.search(LEAK, problem)), "")


def found_by(conversations: int, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what so many conversations found, with a mistake or without one."""
    return tortured("looking_up_trials", str(conversations), str(seed), mistake, in_memory=True)


TORTURE = Torture(
    name="agents look things up",
    does=(
        "In random conversations, half of them forks of the others, agents use every tool in every turn to see all "
        "they can: while others answer the same message, after those have replied, before one of several results is "
        "picked, as a judge, in a relay, beside other conversations, after turns that failed. In three of ten turns "
        "they also read every diff. They hand over by markers and by calls, and leave notes. Two of the four see only "
        "what is addressed to them. Each message, note and diff has a word of its own, and most replies also have "
        "lines that look like somebody else's message, like a remark of ours, or like code that does not end."
    ),
    promise=(
        "an agent finds exactly the words that it may see, as a model of the rules says that is far simpler than the "
        "product: no word of a message, a search, a diff or a note more, and none less; and each word of a message as "
        "what that message's own sender said."
    ),
    run=run,
    fault=f"{len(MISTAKES)} mistakes, one after the other: " + "; ".join(MISTAKES) + ". Each must be found.",
    run_with_fault=run_with_fault,
    seen_as=f"all {len(MISTAKES)} mistakes were found",
    order=26,
)
