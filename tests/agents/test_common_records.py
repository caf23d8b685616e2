"""What several CLIs report in the same shape."""

import pytest

from bullpen.agents.common_records import count, most_used, price, quota, reset_at
from bullpen.turn_events import Quota


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


@pytest.mark.parametrize(
    ("reported", "share"),
    [(0.5, 0.5), (1, 1.0), (1.2, 1.2), (0, 0.0), (-1, None), (True, None), ("1", None), (1e9, None)],
)
def test_a_share_of_a_quota_is_a_number(reported: object, share: float | None) -> None:
    assert quota(reported, 5) == (None if share is None else Quota(used=share, resets_at=5))


def test_of_several_quotas_the_one_counts_that_is_used_most() -> None:
    assert most_used([None, Quota(used=0.4), Quota(used=0.9, resets_at=7), None]) == Quota(used=0.9, resets_at=7)
    assert most_used([None]) is None


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (Quota(used=1, resets_at=60), "1970-01-01T00:01:00+00:00"),
        (Quota(used=0.99, resets_at=60), None),
        (Quota(used=1), None),
        (Quota(used=1, resets_at=2**53 - 1), None),
        (None, None),
    ],
)
def test_only_a_quota_that_is_used_up_says_when_it_is_back(used: Quota | None, said: str | None) -> None:
    assert reset_at(used) == said
