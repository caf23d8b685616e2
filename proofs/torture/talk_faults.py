"""Disk faults while people and agents talk: what was typed and what was answered is not lost."""

import errno
import random
from itertools import product

from proofs.torture.forks import server
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import scratch, why_not

FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS}
FIRST_CALLS = 600
SMALL = 25
UNIT = "faults"


def run(size: Size, seed: int) -> Outcome:
    """Let the disk fail from each call on, until a person is told."""
    return _run(size, seed, plant="")


def run_with_fault(seed: int) -> Outcome:
    """Do it with a conversation that forgets a reply that cannot be stored at once."""
    return _run("small", seed, plant="replies dropped")


def _run(size: Size, seed: int, plant: str) -> Outcome:
    if reason := why_not():
        return Outcome(tried=0, unit=UNIT, skipped=reason)
    every = list(product(range(1, FIRST_CALLS + 1), FAULTS))
    tried = every if size == "full" else random.Random(seed).sample(every, SMALL)
    failures: list[str] = []
    figures = {"messages of people": 0, "that were told in a sentence": 0, "that nobody had to notice": 0}
    with scratch() as folder, server("proofs.torture.faulty_talk", str(folder), plant) as process:
        for at, fault in tried:
            if plant and failures:
                break
            answer = process.ask(error=FAULTS[fault], at=at)
            if answer["failure"]:
                failures.append(
                    f"{fault} at call {at} ({answer.get('call')}): {answer['failure']} {answer.get('errors')}"
                )
                continue
            figures["messages of people"] += answer["said"]
            figures["that were told in a sentence" if answer["errors"] else "that nobody had to notice"] += 1
    return Outcome(tried=len(tried), unit=UNIT, failures=tuple(failures), figures=figures)


TORTURE = Torture(
    name="disk faults in a conversation",
    does=(
        "A person and an agent talk, and from each of the first 600 calls on the disk is full, broken or read-only, "
        "until the person is told and mends it."
    ),
    promise=(
        "what the person typed is stored, or `say` raises and saying it again stores it once; an answer that came is "
        "kept and stored later, without running the agent again; every turn is done, and `fsck` finds nothing."
    ),
    run=run,
    fault="a reply that cannot be stored at once is forgotten.",
    seen_as="until_answered",
    run_with_fault=run_with_fault,
    order=14,
)
