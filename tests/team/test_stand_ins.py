"""Whose program may take a member's place: never one that could do more in its role."""

import pytest

from bullpen.team.stand_ins import program_key, why_not
from bullpen.team.team import Member

SARAH = Member(name="sarah", type="ai", agent="codex", permissions="edit")


@pytest.mark.parametrize(
    ("other", "begins"),
    [
        (Member(name="max", type="ai", agent="claude", permissions="full"), ""),
        (Member(name="max", type="ai", agent="claude", permissions="edit", arguments=("--x",)), ""),
        (Member(name="max", type="ai", agent="claude", permissions="read-only", env=("X",)), ""),
        (Member(name="max", type="ai", agent="", command=("./max",)), "names max, whose program nobody can restrict"),
        (
            Member(name="max", type="ai", agent="claude", permissions="full", arguments=("--x",)),
            "names max, which has arguments or variables of its own",
        ),
        (
            Member(name="max", type="ai", agent="claude", permissions="full", env=("X",)),
            "names max, which has arguments or variables of its own",
        ),
        (Member(name="max", type="ai", agent="claude", pool="gpu"), "names max, which runs elsewhere"),
    ],
)
def test_who_may_not_stand_in_and_why(other: Member, begins: str) -> None:
    why = why_not(SARAH, other)

    assert why.startswith(begins) if begins else why == ""


def test_a_member_that_only_reads_may_be_replaced_from_another_pool() -> None:
    reads = Member(name="kim", type="ai", agent="codex", permissions="read-only")

    assert why_not(reads, Member(name="max", type="ai", agent="claude", permissions="edit", pool="gpu")) == ""


def test_a_program_has_a_quota_for_each_model_account_and_pool() -> None:
    plain = Member(name="max", type="ai", agent="claude")
    others = [
        Member(name="max", type="ai", agent="claude", model="x"),
        Member(name="max", type="ai", agent="claude", arguments=("--x",)),
        Member(name="max", type="ai", agent="claude", env=("X",)),
        Member(name="max", type="ai", agent="claude", pool="gpu"),
    ]

    assert program_key(plain) == program_key(Member(name="kim", type="ai", agent="claude")) == "claude"
    assert len({program_key(one) for one in (plain, *others)}) == 5
