"""A member has the same colour in every door."""

from bullpen.team.team import PALETTE, Member, Team, colours_of


def team(*colours: str) -> Team:
    members = (Member(name=f"m{place}", type="ai", color=colour) for place, colour in enumerate(colours))
    return Team(name="t", members=tuple(members), lead="m0")


def test_who_was_given_a_colour_has_it_and_the_others_take_what_is_free() -> None:
    assert colours_of(team("", "cyan", "")) == {"m0": "magenta", "m1": "cyan", "m2": "green"}


def test_there_are_more_members_than_colours() -> None:
    assert list(colours_of(team(*[""] * 9)).values()) == [*PALETTE, *PALETTE[:2]]
    assert list(colours_of(team(*PALETTE, "")).values()) == [*PALETTE, PALETTE[0]]
