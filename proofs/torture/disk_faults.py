"""Disk faults: a full, broken or read-only disk, met at each of the first calls of a session."""

import errno
import random
from itertools import product

from proofs.torture.forks import server
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import SHORT_WRITE, scratch, why_not

FAULTS = {
    "ENOSPC": errno.ENOSPC,
    "EIO": errno.EIO,
    "EROFS": errno.EROFS,
    "EDQUOT": errno.EDQUOT,
    "a short write": SHORT_WRITE,
}
# What the process does about it: the fault passes at once, or when the person acts on the error, or it dies of it.
CASES = ("once", "until healed", "until killed")
FIRST_CALLS = 600
STEPS = 110
SMALL = 100
UNIT = "faults"


def run(size: Size, seed: int) -> Outcome:
    """Let each call fail in every way."""
    return _run(size, seed, plant="")


def run_with_fault(seed: int) -> Outcome:
    """Do it with a store that takes an error for success."""
    return _run("small", seed, plant="errors swallowed")


def _run(size: Size, seed: int, plant: str) -> Outcome:
    if reason := why_not():
        return Outcome(tried=0, unit=UNIT, skipped=reason)
    chance = random.Random(seed)
    every = list(product(range(1, FIRST_CALLS + 1), FAULTS, CASES))
    # With a planted fault until it is noticed: many calls only prepare the file.
    tried = every if size == "full" else chance.sample(every, 20 * SMALL if plant else SMALL)
    failures: list[str] = []
    figures = {"that were told in a sentence": 0, "that nobody had to notice": 0}
    calls: dict[str, int] = {}
    with (
        scratch() as folder,
        server("proofs.torture.faulty_session", str(folder), str(seed), str(STEPS), plant) as process,
    ):
        states = process.ask(error=0, at=0, case="once", states=[])["states"]
        for at, fault, case in tried:
            if plant and failures:
                break
            answer = process.ask(error=FAULTS[fault], at=at, case=case, states=states)
            if answer.get("failure"):
                failures.append(
                    f"seed {seed}, {fault} at call {at} ({answer.get('call')}), {case}: {answer['failure']}"
                )
                continue
            if answer["crashed"]:
                answer |= process.ask(error=0, at=0, case="look", states=answer["allowed"])
                if answer.get("failure"):
                    failures.append(f"seed {seed}, {fault} at call {at}, killed, then: {answer['failure']}")
            figures["that were told in a sentence" if answer["errors"] else "that nobody had to notice"] += 1
            key = f"in {answer['call']}" if answer["call"] else "that no call was left for"
            calls[key] = calls.get(key, 0) + 1
    return Outcome(
        tried=len(tried), unit=UNIT, failures=tuple(failures), figures={**figures, **dict(sorted(calls.items()))}
    )


TORTURE = Torture(
    name="disk faults",
    does=(
        "A real process works with real SQLite, and each of its first 600 calls that write, sync, cut, open, link or "
        "remove fails once: with no room, an I/O error, a read-only disk, a used-up quota, or half a write; for one "
        "call, until somebody acts on the error, or until the process is killed."
    ),
    promise=(
        "a step raises a sentence and has changed nothing, or it is done; done again after the fault, it works; "
        "the end is the same as without a fault, `fsck` finds nothing, and another process can go on."
    ),
    run=run,
    fault="the store takes an error while appending for success.",
    seen_as="is not as without a fault",
    run_with_fault=run_with_fault,
    order=11,
)
