"""What the torture of the API stands on: it notices each kind of answer that is not as described."""

from tests.torture.described_api import run_with_fault
from tests.torture.outcome import DEFAULT_SEED
from tests.torture.test_classes import tried


def test_a_failure_a_body_and_an_event_that_are_not_described_are_noticed() -> None:
    failures = tried(run_with_fault, DEFAULT_SEED).failures

    calls = {failure.partition(": ")[0] for failure in failures}
    one = "/api/conversations/{id}"
    assert {f"GET {one}/queue", f"GET {one}/events", f"POST {one}/task"} <= calls
    assert all(call.endswith(("/queue", "/events", "/task")) for call in calls)
