"""Two agents and a person who change the same line at the same time; same_line_trials.py does it."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.same_line_mistakes import MISTAKES

ROUNDS: dict[Size, int] = {"small": 10, "full": 1000}
ROUNDS_WITH_MISTAKE = 25
AT_ONCE = 2


def run(size: Size, seed: int) -> Outcome:
    """Let them write, in several conversations at the same time if there are many rounds."""
    count = AT_ONCE if size == "full" else 1
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda part: found_by(ROUNDS[size] // count, seed * count + part), range(count)))
    counts = sum((Counter(part["counts"]) for part in found), Counter[str]())
    failures = tuple(problem for part in found for problem in part["problems"])
    return Outcome(tried=ROUNDS[size], unit="rounds", failures=failures, figures=dict(sorted(counts.items())))


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda name: seen(name, seed), MISTAKES))
    missed = [name for name, problems in zip(MISTAKES, found, strict=True) if not problems]
    failures = () if missed else (f"all {len(MISTAKES)} mistakes were found; {found[0]}",)
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=failures or tuple(f"missed: {one}" for one in missed))


def seen(mistake: str, seed: int) -> str:
    """Return what a mistake was seen as; nothing if it was not, or as something else."""
    problems = found_by(ROUNDS_WITH_MISTAKE, seed, mistake)["problems"]
    return next((problem for problem in problems if re.search(MISTAKES[mistake][-1], problem)), "")


def found_by(rounds: int, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what so many rounds found, with a mistake or without one."""
    return tortured("same_line_trials", str(rounds), str(seed), mistake, in_memory=True)


TORTURE = Torture(
    name="the same line at once",
    does=(
        "Two agents in worktrees of their own write into the same file at the same time: mostly into the same line, "
        "sometimes into different ones, or the same text; in some rounds a person writes into the shared folder "
        "meanwhile. People take one version, keep the other, leave it apart or let a third agent resolve it, also "
        "after opening the conversation again. Every write has a text of its own."
    ),
    promise=(
        "no write is lost: each is in the shared folder, or in a worktree about which people are asked, unless they "
        "have decided against it. Every conflict is announced, stored and shown, and nothing else is called one. The "
        "files are, line by line, what a model of them says."
    ),
    run=run,
    fault=f"{len(MISTAKES)} mistakes, one after the other: " + "; ".join(MISTAKES) + ". Each must be found.",
    run_with_fault=run_with_fault,
    seen_as=f"all {len(MISTAKES)} mistakes were found",
    order=25,
)
