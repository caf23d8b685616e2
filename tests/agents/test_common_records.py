"""What several CLIs report in the same shape."""

import pytest

from bullpen.agents.common_records import count


@pytest.mark.parametrize(
    ("reported", "counted"),
    [(5, 5), (0, 0), (-1, 0), (2**53 - 1, 2**53 - 1), (2**53, 0), ("5", 0), (5.0, 0), (None, 0)],
)
def test_only_a_number_that_can_be_a_count_is_one(reported: object, counted: int) -> None:
    assert count(reported) == counted
