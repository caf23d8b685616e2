"""Fixtures for all tests, and how property tests run."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from bullpen import clock as clocks
from bullpen.testing.clock import ManualClock
from bullpen.testing.played import played as plays

# Before anything imports it.
pytest.register_assert_rewrite("bullpen.testing.store_contract")

# The same examples in every run, so that a failure is the change's: `make torture` looks for new ones.
settings.register_profile(
    "every time the same", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("every time the same")


@pytest.fixture
def clock() -> Iterator[ManualClock]:
    """A clock that stands still until the test moves it."""
    manual = ManualClock()
    with clocks.use(manual):
        yield manual


@pytest.fixture
def played() -> Iterator[None]:
    """Scripted agents play inside the test's process, unless their script needs one of its own."""
    with plays():
        yield
