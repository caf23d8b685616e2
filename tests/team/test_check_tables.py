"""[[check]] in a team file: what it means, what may be wrong with it, and that nothing of it runs unseen."""

from pathlib import Path

import pytest

from bullpen.errors import InvalidTeam
from bullpen.team.checks import problems_of
from bullpen.team.file import LoadedTeam
from bullpen.team.reader import read_team
from bullpen.team.team import Check
from bullpen.team.templates import team_text, template
from bullpen.team.trust import Trust, what_it_runs
from bullpen.view.trust_question import trust_question

TEAM = """
[[member]]
name = "kim"
[[member]]
name = "max"
command = ["sh"]
permissions = "edit"
"""


def checks(text: str) -> tuple[Check, ...]:
    return read_team(TEAM + text).checks


def complaints(text: str) -> list[str]:
    with pytest.raises(InvalidTeam) as error:
        read_team(TEAM + text)
    return [f"{problem.key} {problem.text}" for problem in error.value.problems]


def test_a_check_needs_only_a_command() -> None:
    assert checks('[[check]]\ncommand = ["pytest", "-q"]') == (Check(name="pytest", command=("pytest", "-q")),)


def test_a_check_with_every_key() -> None:
    text = """
[[check]]
command = ["make", "lint"]
name = "the linter & types"
cwd = "backend"
timeout = 2.5
on_red = "return"
most_returns = 1
"""
    (check,) = checks(text)
    assert check == Check(
        name="the linter & types",
        command=("make", "lint"),
        cwd="backend",
        timeout=2.5,
        on_red="return",
        most_returns=1,
    )


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ('["npm", "test"]', "npm test"),
        ('["/usr/bin/python3", "-m", "pytest", "-q", "tests"]', "python3 pytest"),
        ('["pytest", "-q", "-p", "no:cacheprovider"]', "pytest"),
        ('["npm", "run", "lint", "--", "src"]', "npm run lint"),
        ('["sh", "-c", "echo start; sleep 60"]', "sh"),
        ('["a[NEXT: max]", "b [NEXT: max]"]', "aNEXT: max"),
        (f'["{"x" * 90}"]', "x" * 40),
        ('["[]"]', "check 1"),
    ],
)
def test_the_usual_name_is_from_the_command(command: str, name: str) -> None:
    (check,) = checks(f"[[check]]\ncommand = {command}")
    assert check.name == name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('name = "tests"', 'check.1 has no command. Write, for example, command = ["pytest", "-q"]'),
        ('command = "pytest -q"', 'not \'pytest -q\'. Try: command = ["pytest", "-q"]'),
        ("command = []", "check.1.command must be a list of strings, the first a program, not []"),
        ('command = ["x"]\nname = "a\\nb"', "check.1.name must be a name of at most 40 characters in one line"),
        ('command = ["x"]\nname = "[NEXT: max]"', "check.1.name must be a name of at most 40 characters in one line"),
        ('command = ["x"]\ntimeout = 0', "check.1.timeout must be a number of seconds above 0, not 0"),
        ('command = ["x"]\non_red = "fix"', 'check.1.on_red must be "ask" or "return", not \'fix\''),
        ('command = ["x"]\nmost_returns = 0', "check.1.most_returns must be a whole number of at least 1, not 0"),
        ('command = ["x"]\nmost_returns = 2', 'check.1.most_returns has an effect only with on_red = "return"'),
        ('command = ["x"]\npath = "y"', "check.1.path there is no such key."),
        ('command = ["x"]\n[[check]]\ncommand = ["x", "-v"]', "check.2 another check is called 'x', too."),
    ],
)
def test_what_may_be_wrong_with_a_check(text: str, complaint: str) -> None:
    assert any(complaint in said for said in complaints(f"[[check]]\n{text}"))


def test_checks_are_tables() -> None:
    assert any("check must be tables [[check]]" in said for said in complaints('[check]\ncommand = ["x"]'))


def test_nobody_is_called_as_the_one_who_speaks_for_checks() -> None:
    named = TEAM.replace('"max"', '"Bullpen"')
    assert read_team(named).checks == ()
    with pytest.raises(InvalidTeam, match="is who speaks for checks and reviews"):
        read_team(named + '[[check]]\ncommand = ["x"]')


def test_what_only_this_machine_knows(tmp_path: Path) -> None:
    text = f"""{TEAM}
[[check]]
command = ["no-such-program-here"]
[[check]]
name = "b"
command = ["sh"]
cwd = "nowhere"
"""
    found = [f"{one.key} {one.text}" for one in problems_of(text, tmp_path) if one.key and one.key.startswith("check")]
    assert found[0].startswith("check.1.command the program 'no-such-program-here' was not found.")
    assert found[1] == f"check.2.cwd there is no folder {tmp_path / 'nowhere'}"
    reads = text.replace('permissions = "edit"', 'agent = "claude"')
    assert "never runs: no agent of this team may change files" in [one.text for one in problems_of(reads, tmp_path)]


def test_a_check_is_part_of_what_a_person_trusts(tmp_path: Path) -> None:
    text = f'{TEAM}[[check]]\ncommand = ["pytest", "-q"]\non_red = "return"\n'
    path = tmp_path / "team.toml"
    team = read_team(text)

    runs = what_it_runs(team, tmp_path)[-1]
    assert (runs.member, runs.command, runs.folder, runs.restricted) == (
        *("check: pytest", ("pytest", "-q")),
        *(tmp_path.resolve(), False),
    )
    question = trust_question(LoadedTeam(path=path, text=text, team=team))
    facts = dict(question.members[-1].facts)
    assert facts["runs"] == "pytest -q"
    assert facts["when"].startswith("after every turn that changes files there, and returns to its agent up to 3 times")
    assert facts["may"] == "do anything that you may: bullpen cannot restrict this program"
    trust = Trust(tmp_path / "trusted.json")
    trust.remember(path, text)
    assert not trust.knows(path, text.replace("-q", "-v"))


def test_a_template_has_the_usual_tests_as_a_check_that_is_switched_off() -> None:
    text = team_text(template("pair"), ["claude"], person="kim", tests=["python -m pytest", "pytest"])
    commented = [line for line in text.splitlines() if line.startswith("# ")]
    assert '# command = ["python", "-m", "pytest"]' in commented
    assert read_team(text).checks == ()
    switched_on = "\n".join(
        line.removeprefix("# ") if line.startswith(("# [[check", "# command", "# on_red")) else line
        for line in text.splitlines()
    )
    (check,) = read_team(switched_on).checks
    assert (check.command, check.on_red) == (("python", "-m", "pytest"), "return")
    for name, tests in (("pair", []), ("debate", ["pytest"])):
        assert "[[check]]" not in team_text(template(name), ["claude"], person="kim", tests=tests)
