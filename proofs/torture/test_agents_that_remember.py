"""Every mistake in the bookkeeping of sessions is seen, each as what it leads to."""

import re

import pytest
from proofs.torture.agents_that_remember import KILLS_WITH_FAULT, found_by, outcome_of
from proofs.torture.outcome import DEFAULT_SEED, shown
from proofs.torture.remembering_mistakes import MISTAKES

pytestmark = [pytest.mark.torture, pytest.mark.timeout(900)]
MOST_RUNS = 3


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_mistake_is_seen(mistake: str) -> None:
    """What processes do at the same moment is never the same again, so one run may happen to miss a mistake."""
    failures: tuple[str, ...] = ()
    for seed in range(DEFAULT_SEED, DEFAULT_SEED + MOST_RUNS):
        failures = outcome_of(found_by(KILLS_WITH_FAULT // 2, seed, mistake)).failures
        if any(re.search(MISTAKES[mistake][-1], failure) for failure in failures):
            return
    pytest.fail(f"{mistake}: this was not seen in {MOST_RUNS} runs.\n{shown(failures)}")
