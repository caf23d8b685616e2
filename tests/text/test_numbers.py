"""One spelling of money, tokens, durations, sizes and times."""

import pytest

from bullpen.text.numbers import (
    clock,
    counted,
    duration,
    elapsed,
    local_time,
    money,
    short_number,
    size,
    tokens,
    used,
    used_by,
)
from bullpen.turn_events import Usage


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (9_949, "9.9k"), (9_950, "10k"), (999_499, "999k"), (999_500, "1.0M")],
)
def test_a_number_takes_at_most_five_characters(number: int, words: str) -> None:
    assert short_number(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0 s"),
        (3.46, "3.5 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (750, "12 min 30 s"),
        (3_599.6, "1 h 00 min"),
        (3_720, "1 h 02 min"),
    ],
)
def test_a_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_running_clock_counts_whole_seconds() -> None:
    assert [elapsed(seconds) for seconds in (-5, 0.9, 59.9, 60.9, 3_600)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min 00 s",
        "1 h 00 min",
    ]


def test_money_tokens_and_sizes() -> None:
    assert [money(amount) for amount in (0, 0.0031, 0.1, 1_234.5)] == ["$0.00", "$0.0031", "$0.10", "$1,234.50"]
    assert [tokens(number) for number in (1, 1_234)] == ["1 token", "1.2k tokens"]
    assert [size(number) for number in (999, 1_000, 999_949, 999_950)] == ["999 B", "1.0 KB", "999.9 KB", "1.0 MB"]
    assert [counted(number, "turn") for number in (0, 1, 1_200)] == ["0 turns", "1 turn", "1,200 turns"]


def test_what_is_not_known_is_left_out() -> None:
    assert used(0, None) == ""
    assert used(0, 0.5) == "$0.50"
    assert used_by(None) == ""
    assert used_by(Usage(input_tokens=1_000, output_tokens=200, cost_usd=0.02)) == "1.2k tokens · $0.0200"


@pytest.mark.parametrize("moment", [0, -(10**18), 10**18])
def test_a_moment_that_is_none_has_no_time(moment: int) -> None:
    assert (local_time(moment), clock(moment)) == ("", "--:--")


def test_a_moment_has_the_same_time_in_both_forms() -> None:
    assert clock(1_700_000_000_000) == local_time(1_700_000_000_000, seconds=True)[11:16]
