"""kill -9 while files are looked at, put back and merged; file_kills.py does it."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from proofs.torture.file_mistakes import MISTAKES
from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture

EVERY: dict[Size, int] = {"small": 120, "full": 1}
"""Of how many steps one is tried."""
AT_ONCE = 2


def run(size: Size, seed: int) -> Outcome:
    """Kill at steps of all stories: at each, or at some of them that the seed chooses."""
    parts = range(AT_ONCE) if size == "full" else [seed % EVERY[size]]
    of = EVERY[size] * len(parts)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda part: found_by(part, of, seed), parts))
    counts = sum((Counter(part["counts"]) for part in found), Counter[str]())
    # Each process has counted all of them.
    counts["steps in all stories"] //= len(found)
    failures = tuple(problem for part in found for problem in part["problems"])
    tried = counts["kills"] + counts["kills while it was opened again"]
    return Outcome(tried=tried, unit="kills", failures=failures, figures=dict(sorted(counts.items())))


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake, until it is found."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = dict(zip(MISTAKES, threads.map(lambda name: seen(name, seed), MISTAKES), strict=True))
    missed = [name for name, problem in found.items() if not problem]
    failures = tuple(f"missed: {name}" for name in missed) or (f"all {len(MISTAKES)} mistakes were found",)
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=failures)


def seen(mistake: str, seed: int) -> str:
    """Return what a mistake was seen as; nothing if it was not, or as something else."""
    problems: list[str] = found_by(0, 1, seed, mistake)["problems"]
    return next((one for one in problems if re.search(MISTAKES[mistake].seen_as, one)), "")


def found_by(part: int, of: int, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what was found, with a mistake or without one."""
    return tortured("file_kills", str(part), str(of), str(seed), mistake, in_memory=True)


TORTURE = Torture(
    name="kills in files",
    does=(
        "A process is killed while it looks at what a turn changed, undoes, redoes or rewinds, makes a worktree, "
        "brings it up to date or merges it, takes, keeps, resolves or leaves apart what is in conflict, or deletes a "
        "conversation: at each step of it. A step is a file that is renamed, removed, linked or written through, a "
        "folder that is made or removed, the beginning and the end of each call that writes to the store, and git that "
        "is started: before it, while it runs on, and killed with it. In every fourth trial the next process is killed "
        "as well while it completes that. The files are texts, a binary, links, files that become folders, and what is "
        "executable, untracked, or changed by a person meanwhile."
    ),
    promise=(
        "no byte is lost: right after the kill each file that is put back is as before or as wanted; when the "
        "conversation is opened again, all of them are as before, or all as wanted, and its records and questions say "
        "which; what was begun can be done, and taken back. Index, HEAD, branches and stash of the repository are "
        "untouched, no lock or half-written file is left, and no worktree or folder is left when the conversation is "
        "deleted."
    ),
    run=run,
    fault=f"{len(MISTAKES)} mistakes, one after the other: " + "; ".join(MISTAKES) + ". Each must be found.",
    run_with_fault=run_with_fault,
    seen_as=f"all {len(MISTAKES)} mistakes were found",
    order=26,
)
