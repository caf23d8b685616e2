"""Every class of torture, small: no promise breaks. With `-m torture`, also: the fault that is planted is caught."""

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec

import pytest
from proofs.torture.classes import all_classes
from proofs.torture.outcome import DEFAULT_SEED, Outcome, Torture, shown

Arguments = ParamSpec("Arguments")

# Each class does in one test what elsewhere would be many.
pytestmark = pytest.mark.timeout(900)
MOST_RUNS = 5
CLASSES = pytest.mark.parametrize("torture", all_classes(), ids=lambda torture: torture.name)


def tried(work: Callable[Arguments, Outcome], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Outcome:
    """Return what came out, from a process of its own: a browser that other tests left open is no leak of ours."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        outcome = process.submit(work, *args, **kwargs).result()
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    return outcome


@CLASSES
def test_no_promise_breaks(torture: Torture) -> None:
    outcome = tried(torture.run, "small", DEFAULT_SEED)

    assert outcome.failures == (), shown(outcome.failures)
    assert outcome.tried > 0


@pytest.mark.torture
@CLASSES
def test_a_planted_fault_is_caught(torture: Torture) -> None:
    """What processes do at the same moment is never the same again, so one small run may happen to miss a fault."""
    failures: tuple[str, ...] = ()
    for seed in range(DEFAULT_SEED, DEFAULT_SEED + MOST_RUNS):
        failures = tried(torture.run_with_fault, seed).failures
        if any(re.search(torture.seen_as, failure, re.DOTALL) for failure in failures):
            return
    pytest.fail(f"{torture.fault} This was not seen in {MOST_RUNS} runs.\n{shown(failures)}")
