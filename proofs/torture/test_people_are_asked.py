"""Every mistake about questions and answers is seen, each as what it leads to."""

import re

import pytest
from proofs.torture.asking_mistakes import MISTAKES
from proofs.torture.outcome import DEFAULT_SEED, shown
from proofs.torture.people_are_asked import QUESTIONS_WITH_FAULT, found_by, outcome_of

pytestmark = [pytest.mark.torture, pytest.mark.timeout(900)]
MOST_RUNS = 4


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_mistake_is_seen(mistake: str) -> None:
    """What processes do at the same moment is never the same again, so one run may happen to miss a mistake."""
    failures: tuple[str, ...] = ()
    for seed in range(DEFAULT_SEED, DEFAULT_SEED + MOST_RUNS):
        failures = outcome_of(found_by(QUESTIONS_WITH_FAULT, seed, mistake)).failures
        if any(re.search(MISTAKES[mistake][-1], failure) for failure in failures):
            return
    pytest.fail(f"{mistake}: this was not seen in {MOST_RUNS} runs.\n{shown(failures)}")
