"""Agents that ask people, with races, kills and closed doors; asking_kills.py does it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec.structs import replace
from proofs.torture.asking_mistakes import MISTAKES
from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture

QUESTIONS: dict[Size, int] = {"small": 80, "full": 10_000}
QUESTIONS_WITH_FAULT = 150
KEYS = ("kills", "counts", "reached")
FAULT = "an agent hears an answer before it is stored"


def run(size: Size, seed: int) -> Outcome:
    """Let agents ask, several teams at the same time if there are many questions."""
    count = 4 if size == "full" else 1
    with ThreadPoolExecutor(count) as threads:
        found = list(threads.map(lambda part: found_by(QUESTIONS[size] // count, seed * count + part), range(count)))
    outcome = outcome_of(*found)
    reached = len(set[str]().union(*(part["reached"] for part in found)))
    if size == "full" and reached < found[0]["points"]:
        missed = f"only {reached} of {found[0]['points']} named points were reached"
        return replace(outcome, failures=(*outcome.failures, missed))
    return outcome


def run_with_fault(seed: int) -> Outcome:
    """Do it with answers that are given before they are stored."""
    return outcome_of(found_by(2 * QUESTIONS_WITH_FAULT, seed, FAULT))


def found_by(questions: int, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what so many questions found, with a mistake or without one."""
    return tortured("asking_kills", str(questions), str(seed), mistake)


def outcome_of(*found: dict[str, Any]) -> Outcome:
    """Return what came out of all that was found."""
    kills, counts, reached = (sum((Counter(part[key]) for part in found), Counter[str]()) for key in KEYS)
    questions = counts.pop("questions", 0)
    figures = {f"killed {where}": count for where, count in sorted(kills.items(), reverse=True)}
    figures |= {"different named points": len(reached), **dict(sorted(counts.items()))}
    failures = tuple(problem for part in found for problem in part["problems"])
    return Outcome(tried=questions, unit="questions", failures=failures, figures=figures)


TORTURE = Torture(
    name="people are asked",
    does=(
        "Agents ask before each command, several questions at the same time, with ids that they use again. Two people "
        "answer at random, with every scope, both at once, too late, while the turn is cancelled, and through doors "
        "that close before they hear that it counts. The process is killed before and after a question or an answer "
        "is stored, within that commit, around the moment in which the agent hears it, and at random moments. The "
        "agents write down what they asked, heard and ran."
    ),
    promise=(
        "no command runs without a yes that is stored in the chain, and each yes lets one command run, once; every yes "
        "is one that a person, a rule, or an earlier answer gave; no question is lost, none is answered twice; and "
        "`fsck` finds nothing."
    ),
    run=run,
    fault=f"{FAULT}.",
    seen_as=MISTAKES[FAULT][-1],
    run_with_fault=run_with_fault,
    order=6,
)
