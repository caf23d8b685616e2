"""The mistakes themselves: each can be made, and those with a name still have their place."""

import ast
import json
from pathlib import Path

import pytest
from tests.mutants.__main__ import KNOWN, Fate, Tried, _judged
from tests.mutants.mistakes import mistakes_in, named_mistake
from tests.mutants.named import NAMED
from tests.mutants.plan import PLAN

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
