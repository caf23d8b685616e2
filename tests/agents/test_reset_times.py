"""When a quota comes back, in the words of each vendor."""

from datetime import UTC, datetime, timedelta

import pytest

from bullpen.agents.reset_times import reset_moment

NOW = int(datetime(2026, 11, 16, 10, 0, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("2h", 7200),
        ("2h 30m", 9000),
        ("2h30m15s", 9015),
        ("5 minutes", 300),
        ("1 hour 5 min", 3900),
        ("in 3 days", 3 * 86_400),
        ("20", 20),
        ("0.5s", 0.5),
        ("59.2s", 59.2),
        ("11am (UTC)", 3600),
        ("11:05 UTC", 3900),
        ("3:30 AM (UTC)", 17.5 * 3600),
        ("12am UTC", 14 * 3600),
        ("6am (America/New_York)", 3600),
        ("Nov 21st, 2026 3:05 PM UTC", 5 * 86_400 + 5 * 3600 + 300),
        ("Nov 20, 3pm (UTC)", 4 * 86_400 + 5 * 3600),
        ("1.2 hours", 4320),
        ("2026-11-16 14:00:00 UTC", 4 * 3600),
        ("2026-11-16T10:10:00+00:00", 600),
        ("2026-11-16T09:00:00+00:00", 0),
    ],
)
def test_a_moment_that_is_understood(said: str, seconds: float) -> None:
    assert reset_moment(said, NOW) == NOW + int(1000 * seconds)


def test_a_time_of_day_is_the_next_one_here() -> None:
    moment = reset_moment("3pm", NOW)
    assert moment is not None
    here = datetime.fromtimestamp(moment / 1000)
    assert (here.hour, here.minute) == (15, 0)
    assert timedelta() < timedelta(milliseconds=moment - NOW) <= timedelta(days=1)


def test_a_time_of_day_in_this_minute_is_at_its_end() -> None:
    assert reset_moment("10:00 AM (UTC)", NOW + 20_000) == NOW + 60_000


@pytest.mark.parametrize(
    "said",
    [
        "",
        "soon",
        "tomorrow",
        "25:99",
        "99 days",
        "2031-01-01",
        "9" * 400,
        "9" * 400 + "h",
        "next billing cycle",
        "0001-01-01",
        "11/18 at 1/4",
        "9:59 AM (UTC)",
        "Feb 31, 3pm",
        "3pm (Atlantis/City)",
    ],
)
def test_what_is_not_understood(said: str) -> None:
    assert reset_moment(said, NOW) is None
