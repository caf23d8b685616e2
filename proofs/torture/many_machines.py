"""Nodes, workers and their database, killed, frozen, stopped and cut off; cluster/kills.py does it."""

import os
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from proofs.torture.cluster.mistakes import MISTAKES
from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import ALL_FOUND, in_words

from bullpen.testing.postgres import programs

KILLS: dict[Size, int] = {"small": 10, "full": int(os.environ.get("BULLPEN_TORTURE_KILLS", "1000"))}
DROP_SECONDS: dict[Size, int] = {"small": 8, "full": 60}
STUCK_SECONDS: dict[Size, int] = {"small": 120, "full": 30}
"""After which a conversation is stuck. A test on a busy machine says nothing about time."""
AT_ONCE = 2
BROKEN = {
    "lost": "acknowledged words and replies lost",
    "doubled": "words, replies and ends doubled",
    "run twice": "turns run twice",
    "out of order": "conversations out of order",
    "overlapping": "turns overlapping",
    "chain": "broken chains",
    "stuck": "conversations stuck",
    "late": "late writes accepted",
    "claimed": "conversations without one owner",
    "living": "processes given up though they lived",
    "ended": "processes that ended by themselves",
}
"""What a problem begins with, and what is counted."""


def run(size: Size, seed: int) -> Outcome:
    """Do all of it."""
    if why_not := impossible():
        return Outcome(tried=0, unit="kills", skipped=why_not)
    found = found_by(KILLS[size], size, seed)
    counts, problems = Counter(found["counts"]), found["problems"]
    kinds = Counter(next((kind for kind in BROKEN if one.startswith(kind)), "") for one in problems)
    broken = {name: kinds[kind] for kind, name in BROKEN.items()}
    tried = counts["kills of a node"] + counts["kills of a worker"]
    failures = (*problems, *([found["trace"]] if problems and found["trace"] else ()))
    return Outcome(tried=tried, unit="kills", failures=failures, figures=dict(sorted(counts.items())) | broken)


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake, until that is seen."""
    if why_not := impossible():
        return Outcome(tried=0, unit="mistakes", skipped=why_not)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = dict(zip(MISTAKES, threads.map(lambda name: seen(name, seed), MISTAKES), strict=True))
    missed = [name for name, problem in found.items() if not problem]
    failures = tuple(f"missed: {name}" for name in missed) or (ALL_FOUND,)
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=failures)


def seen(mistake: str, seed: int) -> str:
    """Return what a mistake was seen as; nothing if it was not, or as something else."""
    problems: list[str] = found_by(0, "small", seed, mistake)["problems"]
    return next((one for one in problems if re.search(MISTAKES[mistake].seen_as, one)), "")


def found_by(kills: int, size: Size, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what was found, with a mistake or without one."""
    seconds = str(DROP_SECONDS[size]), str(STUCK_SECONDS[size])
    return tortured("cluster.kills", str(kills), *seconds, str(seed), mistake)


def impossible() -> str:
    """Return why nothing can be tried here, if so."""
    if find_spec("psycopg") is None or find_spec("procrastinate") is None:
        return "the extra bullpen-chat[cluster] is not installed"
    return "" if programs() is not None else "there is no PostgreSQL: apt-get install postgresql"


TORTURE = Torture(
    name="many machines",
    does=(
        "Two nodes talk in the same conversations, whose agent runs on two workers, each of them a process of its own "
        "with one PostgreSQL. Nodes and workers are killed at random moments, frozen, and woken before and after "
        "others give them up; nodes are stopped with SIGTERM; PostgreSQL is stopped as in a crash, and its recovery "
        "takes long; all packets between one of them and PostgreSQL are "
        "dropped, in a network namespace; orders that run are delivered again; and 16 processes claim one conversation "
        "at once."
    ),
    promise=(
        "nothing acknowledged is lost or doubled, no agent runs twice for one turn (each notes its own starts), "
        "nothing is out of order, no turns of one member overlap that were answered, no chain is broken, every "
        "conversation goes on within 30 s, nobody writes into a conversation that is another one's, and nobody who "
        "lives is given up (triggers of the test's own note who writes)."
    ),
    run=run,
    fault=in_words(MISTAKES),
    run_with_fault=run_with_fault,
    seen_as=ALL_FOUND,
    order=7,
)
