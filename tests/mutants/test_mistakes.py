"""The mistakes themselves: each can be made, and those with a name still have their place."""

import ast
from pathlib import Path

import pytest
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


def test_the_tests_of_the_plan_are_there() -> None:
    assert [name for tests in PLAN.values() for name in tests if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(("module", "before", "after"), NAMED)
def test_a_mistake_with_a_name_has_one_place(module: str, before: str, after: str) -> None:
    source = (SOURCES / module).read_text()

    assert module in PLAN
    assert named_mistake(module, source, before, after).applied(source) == source.replace(before, after)
