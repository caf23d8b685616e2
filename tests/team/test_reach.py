"""Whom an agent can hand over to: by itself, only with a person's yes, or not at all."""

import pytest

from bullpen.permissions import Permission
from bullpen.team.reach import Reach, agents_reached, reach
from bullpen.team.team import Member, Team

KIM = Member(name="kim", type="human")
LEVELS: tuple[Permission, ...] = ("read-only", "edit", "full")


def agent(permissions: Permission, may_address: tuple[str, ...] | None = None, name: str = "") -> Member:
    return Member(name=name or permissions, type="ai", agent="claude", permissions=permissions, may_address=may_address)


@pytest.mark.parametrize(
    ("sender", "member", "how"),
    [
        ("read-only", "read-only", "freely"),
        ("read-only", "edit", "freely"),
        ("read-only", "full", "if_allowed"),
        ("edit", "read-only", "freely"),
        ("edit", "edit", "freely"),
        ("edit", "full", "if_allowed"),
        ("full", "read-only", "freely"),
        ("full", "edit", "freely"),
        ("full", "full", "freely"),
    ],
)
def test_only_full_permissions_need_a_yes_and_only_from_below(
    sender: Permission, member: Permission, how: Reach
) -> None:
    assert reach(agent(sender), agent(member)) == how


@pytest.mark.parametrize("level", LEVELS)
def test_people_reach_everyone_and_are_reached_by_everyone(level: Permission) -> None:
    assert reach(KIM, agent(level)) == "freely"
    assert reach(agent(level), KIM) == "freely"


@pytest.mark.parametrize("level", LEVELS)
def test_may_address_opens_and_narrows(level: Permission) -> None:
    sender = agent(level, may_address=("full",), name="max")

    assert reach(sender, agent("full")) == "freely"
    assert reach(sender, agent("edit")) == "never"
    assert reach(sender, KIM) == "never"


def test_the_agents_that_one_reaches() -> None:
    scout, builder, writer = agent("read-only", name="scout"), agent("full", name="builder"), agent("edit", name="max")
    team = Team(name="shop", lead="scout", members=(KIM, scout, builder, writer))

    assert agents_reached(team, scout, "freely") == ["max"]
    assert agents_reached(team, scout, "if_allowed") == ["builder"]
    assert agents_reached(team, builder, "freely") == ["scout", "max"]
