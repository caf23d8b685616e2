"""Names in a team: whom somebody means, and what they read when it is nobody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.routing.resolver import Resolver, Unresolved
from bullpen.team.team import Member, Team


def team_of(**display_names: str) -> Team:
    members = tuple(Member(name=name, type="ai", display_name=display) for name, display in display_names.items())
    return Team(name="team", lead=members[0].name, members=members)


TEAM = team_of(max="", sarah="Sarah (backend)", dev2="Priya Raman", qa="Tomás Ruiz")
RESOLVER = Resolver(TEAM)


@pytest.mark.parametrize(
    ("name", "member"),
    [("MAX", "max"), ("@sarah", "sarah"), ("sarah (backend)", "sarah"), ("priya raman", "dev2"), ("“qa”", "qa")],
)
def test_a_name_or_a_display_name_finds_its_member(name: str, member: str) -> None:
    assert RESOLVER.resolve(name) == TEAM.member(member)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("sahra", "Nobody here is called 'sahra'. Did you mean sarah?"),
        ("priya raman!", "Nobody here is called 'priya raman!'. Did you mean dev2?"),
        ("Priya", "Nobody here is called 'Priya'. Did you mean dev2?"),
        ("Tomas Ruiz", "Nobody here is called 'Tomas Ruiz'. Did you mean qa?"),
        ("zzz", "Nobody here is called 'zzz'."),
        ("@", "Nobody here is called '@'."),
        ("a\nb\x1b[2J", "Nobody here is called 'a\\nb\\x1b[2J'."),
        ("", "A name is missing."),
        (" \n", "A name is missing."),
    ],
)
def test_a_name_that_is_nobodys_comes_with_the_nearest(name: str, sentence: str) -> None:
    assert str(RESOLVER.resolve(name)) == sentence


def test_a_member_is_suggested_once_even_if_both_its_names_are_near() -> None:
    found = Resolver(team_of(carol="Caroll", carl="Carla", karol="Karola", max="")).resolve("caro")

    assert isinstance(found, Unresolved)
    assert found.candidates == ("carol", "carl", "karol")


def test_a_display_name_of_two_members_is_suggested_to_nobody_and_could_be_both() -> None:
    resolver = Resolver(team_of(a="Sarah", b="Sarah"))

    assert str(resolver.resolve("sarah")) == "'sarah' could be a or b."
    assert str(resolver.resolve("sarahh")) == "Nobody here is called 'sarahh'."


def test_a_display_name_of_mere_decoration_is_no_name() -> None:
    resolver = Resolver(team_of(max="***", sarah='"'))

    assert isinstance(resolver.resolve("@"), Unresolved)
    assert isinstance(resolver.resolve(""), Unresolved)


def test_an_overlong_name_is_shown_in_part_and_compared_with_nobody() -> None:
    found = RESOLVER.resolve("sarah " * 100_000)

    assert str(found) == f"Nobody here is called '{('sarah ' * 17)[:99]}…'."


@given(name=st.text())
def test_any_name_gives_a_member_or_a_short_line(name: str) -> None:
    found = RESOLVER.resolve(name)

    if isinstance(found, Unresolved):
        assert len(str(found).splitlines()) == 1
        assert str(found).isprintable()
