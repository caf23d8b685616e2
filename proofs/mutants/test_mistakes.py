"""The mistakes themselves: each can be made, and those with a name still have their place."""

import ast
import json
from pathlib import Path

import pytest
from proofs.mutants import trial
from proofs.mutants.__main__ import KNOWN, Fate, Tried, _judged
from proofs.mutants.copies import mistaken
from proofs.mutants.mistakes import mistakes_in, named_mistake
from proofs.mutants.named import NAMED
from proofs.mutants.plan import PLAN
from proofs.mutants.planted import PLANTED

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "bullpen"
EXAMPLE = '''
def first(text: str, most: int = 5) -> str | None:
    """Say something."""
    if not text or len(text) > most:
        return None
    logger.info("first %d", 1)
    print(text)
    return text[0] + "" if True else text
'''


def test_every_kind_of_mistake_is_made() -> None:
    made = {(one.before, one.after) for one in mistakes_in("example.py", EXAMPLE)}

    assert made == {
        ("not text or len(text) > most", "(not text and len(text) > most)"),
        ("not text", "(text)"),
        ("len(text) > most", "(len(text) >= most)"),
        ("print(text)", "pass"),
        ('return text[0] + "" if True else text', "return None"),
        ('text[0] + "" if True else text', "(text[0] + '' if not True else text)"),
        ('text[0] + ""', "(text[0] - '')"),
        ("0", "1"),
        ("True", "False"),
    }


def test_false_becomes_none_only_where_none_means_something_else() -> None:
    source = "def is_there() -> {}:\n    return False\n"

    plain, unsure = ([one.after for one in mistakes_in("x.py", source.format(of))] for of in ("bool", "bool | None"))

    assert (plain, unsure) == (["True"], ["return None", "True"])


@pytest.mark.parametrize("module", PLAN)
def test_every_module_of_the_plan_can_be_read_with_each_mistake(module: str) -> None:
    source = (SOURCES / module).read_text()
    mistakes = mistakes_in(module, source)

    assert mistakes
    for one in mistakes:
        assert ast.parse(one.after)
        assert one.applied(source) != source


def test_every_known_survivor_can_still_be_made_and_has_a_reason() -> None:
    known: dict[str, str] = json.loads(KNOWN.read_text())
    modules = {name.partition(" ")[0] for name in known}
    made = {one.name for module in modules for one in mistakes_in(module, (SOURCES / module).read_text())}

    assert {*known} <= made
    assert all(reason.strip() for reason in known.values())


@pytest.mark.parametrize(
    ("fates", "code"),
    [(["killed", "killed"], 0), (["killed", "known"], 0), (["known"], 0), (["killed"] * 99 + ["survived"], 1)],
)
def test_one_survivor_without_a_reason_is_enough_to_fail(
    fates: list[Fate], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake = mistakes_in("example.py", EXAMPLE)[0]

    assert _judged([Tried(mistake, fate, 1.0) for fate in fates], seed=1) == code
    said = capsys.readouterr().out
    assert f"{len(fates)} mistakes in 1 modules" in said
    assert "% of those that matter are killed" in said
    assert ("survivors.json" in said) == bool(code)


def test_the_tests_of_the_plan_are_there() -> None:
    assert [name for tests in PLAN.values() for name in tests if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(("module", "before", "after"), NAMED)
def test_a_mistake_with_a_name_has_one_place(module: str, before: str, after: str) -> None:
    source = (SOURCES / module).read_text()

    assert module in PLAN
    assert named_mistake(module, source, before, after).applied(source) == source.replace(before, after)


def test_a_planted_mistake_has_one_place_and_tests_near_to_it() -> None:
    for one in PLANTED:
        source = (SOURCES / one.module).read_text()
        wrong = named_mistake(one.module, source, one.before, one.after).applied(source)

        assert wrong == source.replace(one.before, one.after) != source
        assert ast.parse(wrong), one.about
        assert any(list((ROOT / "tests").glob(pattern)) for pattern in one.near), one.about
        assert all((ROOT / "tests" / pattern).parent.is_dir() for pattern in one.near), one.about


def test_every_planted_mistake_was_noticed_before_the_tests_changed() -> None:
    noticed: dict[str, str] = json.loads(trial.BEFORE.read_text())

    assert [one.about for one in PLANTED] == list(noticed)
    assert all("::test_" in test for test in noticed.values())
    assert len(PLANTED) >= 66


def test_a_mistake_is_there_only_meanwhile(tmp_path: Path) -> None:
    one = PLANTED[0]
    file = tmp_path / "src" / "bullpen" / one.module
    compiled = file.parent / "__pycache__" / f"{file.stem}.cpython-311.pyc"
    compiled.parent.mkdir(parents=True)
    compiled.touch()
    file.write_text(one.before)

    with mistaken(tmp_path, named_mistake(one.module, one.before, one.before, one.after)):
        assert (file.read_text(), compiled.exists()) == (one.after, False)
        compiled.touch()
    assert (file.read_text(), compiled.exists()) == (one.before, False)


@pytest.mark.parametrize(("fate", "code"), [("killed", 0), ("survived", 1), ("unclear", 1)])
def test_one_planted_mistake_that_is_not_noticed_is_enough_to_fail(
    fate: trial.Fate, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = trial.Tried(PLANTED[0], "killed", "tests/x.py::test_x", 1.0)

    assert trial.judged([killed, trial.Tried(PLANTED[1], fate, "", 1.0)]) == code
    assert "2 mistakes: " in capsys.readouterr().out
