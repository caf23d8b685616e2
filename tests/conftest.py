"""What holds for all tests: each has a time limit, and none depends on how busy the machine is.

A test that exceeds its limit fails with the stacks of all threads. If it then hangs in cleaning up, its process prints
the stacks and ends, and `make test` continues in another one.
"""

import faulthandler
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

CLEANING_UP_SECONDS = 60.0

# Tests do not assert times, and each has a limit anyway.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the real stderr: while a test runs, its output is captured."""
    config.stash[_stderr] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_stderr])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process if a test hangs although its time is over."""
    marker = item.get_closest_marker("timeout")
    seconds = float(marker.args[0] if marker else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(seconds + CLEANING_UP_SECONDS, file=item.config.stash[_stderr], exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_enter_pdb() -> None:
    faulthandler.cancel_dump_traceback_later()
