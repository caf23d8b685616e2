"""Every class of torture, small: no promise breaks, and the fault that is planted is caught."""

import pytest
from tests.torture.classes import all_classes
from tests.torture.outcome import DEFAULT_SEED, Outcome, Torture, shown

CLASSES = pytest.mark.parametrize("torture", all_classes(), ids=lambda torture: torture.name)


def tried(outcome: Outcome) -> Outcome:
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    return outcome


@CLASSES
def test_no_promise_breaks(torture: Torture) -> None:
    outcome = tried(torture.run("small", DEFAULT_SEED))

    assert outcome.failures == (), shown(outcome.failures)
    assert outcome.tried > 0


@CLASSES
def test_a_planted_fault_is_caught(torture: Torture) -> None:
    assert tried(torture.run_with_fault(DEFAULT_SEED)).failures != ()
