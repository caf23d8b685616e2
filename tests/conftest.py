"""A test leaves no fork behind."""

from collections.abc import Generator

import pytest
from tests import forked


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose forks outlive it."""
    result = yield
    if (left := forked.left()) and not item.get_closest_marker("foreign"):
        pytest.fail(f"It left processes behind: {'; '.join(left)}", pytrace=False)
    return result
