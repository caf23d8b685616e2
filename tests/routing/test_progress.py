"""The sentences that say which limit was reached."""

import pytest

from bullpen.routing.progress import Progress, cap_reached, without_asked
from bullpen.team.team import Limits

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("progress", "limits", "sentence"),
    [
        (Progress(turns=1), Limits(turns_per_message=1), "have taken 1 turn"),
        (Progress(turns=1_200), Limits(turns_per_message=1_000), "have taken 1,200 turns"),
        (Progress(since=-HOUR), Limits(minutes=60), "have worked for 1 h 00 min"),
        (Progress(since=-90_000), Limits(minutes=1.5), "have worked for 1 min 30 s"),
        (Progress(tokens=34_200), Limits(tokens=30_000), "have used 34k tokens"),
        (Progress(cost_usd=1.255), Limits(cost_usd=1.25), "have spent $1.25"),
        (Progress(cost_usd=0.0031), Limits(cost_usd=0.003), "have spent $0.0031"),
    ],
)
def test_a_limit_is_named_with_what_was_used(progress: Progress, limits: Limits, sentence: str) -> None:
    assert cap_reached(progress, limits, now=0) == f"The agents {sentence} since you last spoke."


def test_the_clock_stands_still_while_people_are_asked() -> None:
    began = Progress(since=-HOUR)
    assert without_asked(began, 1_800, at=0).since == -HOUR // 2
    assert without_asked(began, 9_999, at=0).since == 0, "a person may have spoken meanwhile"
    assert without_asked(began, 0, at=0) == began
    sentence = cap_reached(without_asked(began, 60, at=0), Limits(minutes=59), now=0)
    assert sentence == "The agents have worked for 59 min 00 s since you last spoke."


def test_below_every_limit_no_reason_is_given() -> None:
    limits = Limits(minutes=60, tokens=30_000, cost_usd=1.25)
    assert cap_reached(Progress(since=1 - HOUR, tokens=29_999, cost_usd=1.24), limits, now=0) is None
