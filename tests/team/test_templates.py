"""Templates: every one, with every combination of agents, is a team that works."""

import re
import subprocess
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
from bullpen.team.team import Team
from bullpen.team.templates import PAIR, SECOND_OPINION, TEMPLATES, Template, team_text

AGENTS = list(known_agents())


def selections() -> Iterator[tuple[str, ...]]:
    for size in range(len(AGENTS) + 1):
        yield from combinations(AGENTS, size)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with a program for every agent."""
    for spec in known_agents().values():
        (tmp_path / spec.program).write_text("#!/bin/sh\n")
        (tmp_path / spec.program).chmod(0o755)
    return {"PATH": str(tmp_path)}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
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


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
def test_hand_overs_in_instructions_name_members(template: Template) -> None:
    team = read_team(team_text(template, [], person="kim"))

    for role in template.roles:
        assert ("[NEXT" in role.instruction) == bool(hand_overs(team, role.name, role.instruction))


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
def test_scripted_agents_run_hand_over_to_each_other_and_come_to_an_end(template: Template, tmp_path: Path) -> None:
    team = read_team(team_text(template, [], person="kim"))
    waiting, spoke = [team.lead], list[str]()
    while waiting:
        name = waiting.pop(0)
        command = [re.sub('"delay": [0-9.]+', '"delay": 0', word) for word in team.member(name).command]
        said = subprocess.run(command, input="hello", cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        waiting += hand_overs(team, name, said)
        spoke.append(name)

    assert spoke == [role.name for role in template.roles]


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

    assert text.startswith("# A team for bullpen. One builds, one reviews.\n#\n#   bullpen check my team.toml ")
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
def test_agents_that_edit_may_run_the_tests_if_that_means_something(
    template: Template, tmp_path: Path, installed: dict[str, str]
) -> None:
    for agents in selections():
        text = team_text(template, agents, person="kim", tests=["pytest", "npm test"])
        team = read_team(text)

        assert check_team(team, tmp_path, environ=installed, text=text) == ()
        for member in team.agents:
            assert member.allow == (("pytest", "npm test") if member.permissions == "ask" else ())
