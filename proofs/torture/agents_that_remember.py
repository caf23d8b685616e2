"""Agents that remember, and kill -9 around their sessions; remembering_kills.py does it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec.structs import replace
from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.remembering_mistakes import MISTAKES

KILLS: dict[Size, int] = {"small": 20, "full": 1000}
KILLS_WITH_FAULT = 40
KEYS = ("kills", "counts", "reached")
FAULT = "what a killed turn left stays in the session"


def run(size: Size, seed: int) -> Outcome:
    """Kill conversations whose agents remember, several of them at the same time if there are many."""
    count = 4 if size == "full" else 1
    with ThreadPoolExecutor(count) as threads:
        found = list(threads.map(lambda part: found_by(KILLS[size] // count, seed * count + part), range(count)))
    outcome = outcome_of(*found)
    reached = len(set[str]().union(*(part["reached"] for part in found)))
    if size == "full" and reached < found[0]["points"]:
        missed = f"only {reached} of {found[0]['points']} named points were reached"
        return replace(outcome, failures=(*outcome.failures, missed))
    return outcome


def run_with_fault(seed: int) -> Outcome:
    """Do it with sessions that are not put back."""
    return outcome_of(found_by(KILLS_WITH_FAULT, seed, FAULT))


def found_by(kills: int, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what so many kills found, with a mistake or without one."""
    return tortured("remembering_kills", str(kills), str(seed), mistake)


def outcome_of(*found: dict[str, Any]) -> Outcome:
    """Return what came out of all that was found."""
    kills, counts, reached = (sum((Counter(part[key]) for part in found), Counter[str]()) for key in KEYS)
    figures = {f"killed {where}": count for where, count in sorted(kills.items(), reverse=True)}
    figures |= {"different named points": len(reached), **dict(sorted(counts.items()))}
    failures = tuple(problem for part in found for problem in part["problems"])
    return Outcome(tried=kills.total(), unit="kills", failures=failures, figures=figures)


TORTURE = Torture(
    name="agents that remember",
    does=(
        "A process is killed in which agents continue their own sessions, answer at the same time, fail, are cancelled "
        "and are made to forget, and whose session files are deleted, changed and moved: before and after every step "
        "with a session, while the CLI has the prompt, within a commit, and at random moments. The agents log what "
        "their models get."
    ),
    promise=(
        "no message is missing from what a model has got, unless the prompt says how many are not shown; none is sent "
        "twice in a session; nothing counts as seen before its turn has ended well; no session is begun anew without "
        "a cause; and `fsck` finds nothing."
    ),
    run=run,
    fault=f"{FAULT}.",
    seen_as=MISTAKES[FAULT][-1],
    run_with_fault=run_with_fault,
    order=6,
)
