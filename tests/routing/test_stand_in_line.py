"""From a share of a budget or a quota on, a member's own program is spared."""

import pytest

from bullpen.routing.progress import MemberUsage, Progress
from bullpen.routing.rests import QuotaUse, Rest, awake
from bullpen.routing.stand_in_line import why_spared
from bullpen.team.stand_ins import program_key
from bullpen.team.team import Budget, Member, Team

NOW = 1_000_000
BUDGET = Budget(turns=10)
EVA = Member(name="eva", type="ai", agent="codex")


def member(line: float | None, budget: Budget = BUDGET) -> Member:
    return Member(name="max", type="ai", agent="claude", stand_in=("eva",), stand_in_at=line, budget=budget)


@pytest.mark.parametrize(
    ("line", "turns", "spared"),
    [(0.9, 8, ""), (0.9, 9, ": 90 % of its budget is used"), (0.5, 12, ": 120 % of its budget is used"), (None, 9, "")],
)
def test_a_budget_has_a_line(line: float | None, turns: int, spared: str) -> None:
    progress = Progress(used={"max": MemberUsage(turns=turns), "eva": MemberUsage(turns=100)})
    assert why_spared(progress, member(line), NOW) == spared


def test_without_a_budget_nothing_is_a_share_of_it() -> None:
    assert not why_spared(Progress(used={"max": MemberUsage(turns=99)}), member(0.5, Budget()), NOW)


@pytest.mark.parametrize(
    ("used", "until", "is_spared"), [(0.9, NOW + 1, True), (0.89, NOW + 1, False), (0.99, NOW, False)]
)
def test_a_quota_has_a_line_until_it_begins_again(used: float, until: int, is_spared: bool) -> None:
    max_ = member(0.9)
    progress = Progress(quotas={program_key(max_): QuotaUse(used=used, until=until)})
    assert why_spared(progress, max_, NOW).endswith("% of its quota is used") is is_spared
    other = Progress(quotas={program_key(EVA): QuotaUse(used=used, until=until)})
    assert not why_spared(other, max_, NOW), "of another program"


@pytest.mark.parametrize(
    ("resting", "tried", "is_spared", "by"),
    [
        ((), (), True, "eva"),
        ((), (), False, "max"),
        (("eva",), (), True, "max"),
        ((), ("eva",), True, "max"),
        (("max",), (), True, "eva"),
        (("max", "eva"), (), True, None),
    ],
)
def test_who_is_spared_takes_a_turn_that_nobody_else_can(
    resting: tuple[str, ...], tried: tuple[str, ...], is_spared: bool, by: str | None
) -> None:
    max_ = member(0.9)
    keys = {"max": program_key(max_), "eva": program_key(EVA)}
    rests = {keys[name]: Rest(why="quota", until=NOW + 1) for name in resting}
    team = Team(name="t", lead="max", members=(max_, EVA))
    assert awake(team, max_, rests, NOW, tried, is_spared=is_spared) == by
