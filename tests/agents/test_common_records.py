"""What several CLIs report in the same shape."""

import pytest

from bullpen.agents.common_records import count, price


@pytest.mark.parametrize(
    ("reported", "counted"),
    [(5, 5), (0, 0), (-1, 0), (2**53 - 1, 2**53 - 1), (2**53, 0), ("5", 0), (5.0, 0), (None, 0)],
)
def test_only_a_number_that_can_be_a_count_is_one(reported: object, counted: int) -> None:
    assert count(reported) == counted


@pytest.mark.parametrize(
    ("reported", "dollars"),
    [(0.25, 0.25), (2, 2.0), (0, 0.0), (-1, None), (True, None), ("2", None), (None, None), (10**400, None)],
)
def test_a_price_is_a_number_whole_or_not(reported: object, dollars: float | None) -> None:
    assert price(reported) == dollars
