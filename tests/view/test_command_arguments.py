"""Which turns and members a person means."""

import pytest

from bullpen.team.team import Member, Team
from bullpen.view.command_arguments import Which, read_which

NAMES = ("max", "agent 7", "14")
TEAM = Team(name="t", members=tuple(Member(name=name, type="ai", command=("x",)) for name in NAMES), lead="max")


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ("", Which()),
        ("3 4", Which(turns=("3", "4"))),
        ("max", Which(members=("max",))),
        ("max 14", Which(turns=("14",), members=("max",))),
        ("Agent 7", Which(members=("Agent 7",))),
        ("agent 7 3", Which(turns=("3",), members=("agent 7",))),
        # A number alone is a turn, also where somebody is called so.
        ("14", Which(turns=("14",))),
        ("max、agent 7", Which(members=("max", "agent 7"))),
        ("max & 3, 4", Which(turns=("3", "4"), members=("max",))),
        ("ALL", Which(everything=True)),
        ("-", Which(members=("-",))),
    ],
)
def test_what_is_meant(text: str, which: Which) -> None:
    assert read_which(text, TEAM) == which
