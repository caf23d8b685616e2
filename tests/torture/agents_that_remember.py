"""Agents that remember, and kill -9 around their sessions; remembering_kills.py does it."""

from typing import Any

from tests.torture.kill_nine import tortured
from tests.torture.outcome import Outcome, Size, Torture
from tests.torture.remembering_mistakes import MISTAKES

KILLS: dict[Size, int] = {"small": 40, "full": 1000}
FAULT = "what a killed turn left stays in the session"


def run(size: Size, seed: int) -> Outcome:
    """Kill conversations whose agents remember."""
    return outcome_of(KILLS[size], seed)


def run_with_fault(seed: int) -> Outcome:
    """Do it with sessions that are not put back."""
    return outcome_of(KILLS["small"], seed, FAULT)


def outcome_of(kills: int, seed: int, mistake: str = "") -> Outcome:
    """Return what came out, with a mistake or without one."""
    found: dict[str, Any] = tortured("remembering_kills", str(kills), str(seed), mistake)
    figures = {f"killed {where}": count for where, count in sorted(found["kills"].items(), reverse=True)}
    figures |= {"different named points": found["points"], **dict(sorted(found["counts"].items()))}
    return Outcome(tried=sum(found["kills"].values()), unit="kills", failures=tuple(found["problems"]), figures=figures)


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
