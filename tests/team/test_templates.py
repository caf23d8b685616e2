"""Templates: every one, with every combination of agents, is a team that works."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.agents.registry import known_agents
from bullpen.markers.grammar import read_markers
from bullpen.routing.router import Router
from bullpen.team.checks import check_team
from bullpen.team.reader import read_team
from bullpen.team.team import Check, Team
from bullpen.team.templates import Template, team_text, template, templates
from bullpen.team.templates.team_text import SECOND_OPINION

AGENTS = list(known_agents())
PAIR = template("pair")
every_template = pytest.mark.parametrize("template", templates(), ids=[one.name for one in templates()])


def selections() -> Iterator[tuple[str, ...]]:
    for size in (0, 1, 2, len(AGENTS)):
        yield from combinations(AGENTS, size)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with a program for every agent."""
    for spec in known_agents().values():
        (tmp_path / spec.program).write_text("#!/bin/sh\n")
        (tmp_path / spec.program).chmod(0o755)
    return {"PATH": str(tmp_path)}


@every_template
def test_every_template_with_every_combination_of_agents_passes_every_check(
    template: Template, tmp_path: Path, installed: dict[str, str]
) -> None:
    for agents in selections():
        text = team_text(template, agents, person="kim")
        team = read_team(text)

        assert check_team(team, tmp_path, environ=installed, text=text) == ()
        roles = [*template.roles, *[SECOND_OPINION] * (len(agents) - len(template.roles))]
        names = [member.name for member in team.members]
        assert names[: len(template.roles) + 1] == ["kim", *(role.name for role in template.roles)]
        assert [member.system_instruction for member in team.agents] == [role.instruction for role in roles]
        assert max(map(len, text.splitlines())) <= 240
        if agents:
            used = {member.agent for member in team.agents}
            assert len(used) == len(agents)
            asking = {agent for agent in used if agent != "pi"}
            wanted = [
                "ask" if role.permissions == "edit" and member.agent in asking else role.permissions
                for role, member in zip(roles, team.agents, strict=True)
            ]
            assert [member.permissions for member in team.agents] == wanted, "pi cannot ask"


def hand_overs(team: Team, speaker: str, text: str) -> list[str]:
    """Return whom a text asks; every name in it must work."""
    route = Router(team).route(team.member(speaker), read_markers(text))
    assert route.notes == ()
    return [asked.member for asked in route.asked]


@every_template
def test_hand_overs_in_instructions_name_members(template: Template) -> None:
    team = read_team(team_text(template, [], person="kim"))

    for role in template.roles:
        assert ("[NEXT" in role.instruction) == bool(hand_overs(team, role.name, role.instruction))


@every_template
def test_instructions_name_every_marker_that_ends_the_script(template: Template) -> None:
    for role in template.roles:
        for marker in read_markers(role.line):
            assert marker.kind.upper() in role.instruction


def test_a_template_is_found_by_the_name_that_it_had() -> None:
    assert template("design-build-test").name == "plan-build-test"
    assert PAIR.name == "build-review-until-approved"
    with pytest.raises(KeyError):
        template("../pair")


@pytest.mark.parametrize(
    ("person", "name"),
    [
        ("kim", "kim"),
        ("名字", "名字"),
        ("max]", "max"),
        ("Kim O'Brien", "Kim O'Brien"),
        ('a"b\\c', 'a"b\\c'),
        ("kim\x1b[31m", "kim31m"),
        ("CORP\\kim", "CORP\\kim"),
        ("builder", "you"),
        ("Builder ", "you"),
        ("all", "you"),
        ("", "you"),
        ("]]]", "you"),
        ("a\x7fb", "ab"),
        ("\udcff", "you"),
    ],
)
def test_the_name_of_the_person_may_be_anything(person: str, name: str) -> None:
    text = team_text(PAIR, ["claude"], person=person)

    assert [member.name for member in read_team(text).people] == [name]
    text.encode()


@given(person=st.text(), file=st.text())
def test_no_name_makes_a_file_that_cannot_be_read(person: str, file: str) -> None:
    text = team_text(PAIR, ["claude"], person=person, file=file)

    read_team(text.encode().decode())


def test_a_template_is_short_and_says_what_to_do_with_it() -> None:
    text = team_text(PAIR, ["claude-code", "openai-codex"], person="kim", file="my team.toml")

    assert text.startswith(f"# A team for bullpen. {PAIR.purpose}\n#\n#   bullpen check my team.toml ")
    assert len(text.splitlines()) < 40


@every_template
def test_agents_that_edit_may_run_the_tests_if_that_means_something(
    template: Template, tmp_path: Path, installed: dict[str, str]
) -> None:
    for agents in selections():
        text = team_text(template, agents, person="kim", tests=["pytest", "npm test"])
        team = read_team(text)

        assert check_team(team, tmp_path, environ=installed, text=text) == ()
        for member in team.agents:
            assert member.allow == (("pytest", "npm test") if member.permissions == "ask" else ())


def test_tests_are_a_check_where_the_template_wants_one() -> None:
    text = team_text(template("plan-build-test"), ["claude", "codex"], person="kim", check="python -m pytest")

    assert read_team(text).checks == (Check(name="python pytest", command=("python", "-m", "pytest"), on_red="return"),)


def test_without_tests_a_check_is_there_to_be_switched_on() -> None:
    text = team_text(template("plan-build-test"), ["claude"], person="kim")

    assert read_team(text).checks == ()
    assert '# command = ["pytest", "-q"]\n# on_red = "return" ' in text
