"""clauses.json: every clause of the specification has a verdict and a test, and a decision where it differs."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
CLAUSES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("clauses.json").read_text(encoding="utf-8"))
BY_NUMBER = "tests/context/spec/test_clauses_by_number.py"

TEXTS = ["000", "001", "002", "003", "004", "decision"]
FIELDS = ["number", "text", "section", "clause", "verdict", "tests"]
FIELDS_WITH_DECISION = ["number", "text", "section", "clause", "verdict", "decision", "tests"]


def numbers_where(is_wrong: Callable[[dict[str, Any]], bool]) -> list[int]:
    return [clause["number"] for clause in CLAUSES if is_wrong(clause)]


def named_tests() -> list[str]:
    return sorted({test for clause in CLAUSES for test in clause["tests"]})


@cache
def names_in(path: str) -> set[str]:
    """Return the tests of a file as pytest names them, without parameters."""
    return set(_names_of_tests(ast.parse((ROOT / path).read_text(encoding="utf-8")).body))


def _names_of_tests(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{name}" for name in _names_of_tests(node.body))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def test_every_clause_is_listed_in_order() -> None:
    assert [clause["number"] for clause in CLAUSES] == list(range(1, 295))
    assert [clause["text"] for clause in CLAUSES] == sorted((clause["text"] for clause in CLAUSES), key=TEXTS.index)
    assert {clause["text"] for clause in CLAUSES} == set(TEXTS)


def test_every_clause_has_its_fields() -> None:
    assert numbers_where(lambda c: list(c) != (FIELDS_WITH_DECISION if c["verdict"] == "decision" else FIELDS)) == []
    assert numbers_where(lambda c: not all(isinstance(c[name], str) and c[name] for name in FIELDS[1:5])) == []
    assert numbers_where(lambda c: not c["tests"] or len(c["tests"]) != len(set(c["tests"]))) == []


def test_a_clause_holds_or_a_decision_says_why_not() -> None:
    assert {clause["verdict"] for clause in CLAUSES} == {"holds", "decision"}


def test_a_clause_of_a_decision_has_its_number_as_section() -> None:
    sections = [clause["section"] for clause in CLAUSES if clause["text"] == "decision"]

    assert {int(section) for section in sections} <= decisions_in_the_document()


def test_every_test_that_is_named_exists() -> None:
    parts = [test.partition("::") for test in named_tests()]

    assert [f"{path}::{name}" for path, _, name in parts if name not in names_in(path)] == []


def test_every_test_of_a_clause_by_number_is_named_by_its_clause() -> None:
    numbered = [name for name in names_in(BY_NUMBER) if re.match(r"test_\d{3}_", name)]

    named = {(clause["number"], test) for clause in CLAUSES for test in clause["tests"]}

    assert [name for name in numbered if (int(name[5:8]), f"{BY_NUMBER}::{name}") not in named] == []
    assert [name for name in names_in(BY_NUMBER) if f"{BY_NUMBER}::{name}" not in named_tests()] == []


def decisions_in_the_document() -> set[int]:
    document = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    return {int(number) for number in re.findall(r"^### (\d+)\. \S", document, re.MULTILINE)}


def decisions_with_a_test() -> set[int]:
    paths = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/*/test_decisions.py")]
    return {
        int(found[1]) for path in paths for name in names_in(path) if (found := re.match(r"test_decision_(\d+)", name))
    }


def test_a_decision_that_is_named_is_in_the_document_and_has_a_test() -> None:
    named = {clause["decision"] for clause in CLAUSES if "decision" in clause}

    assert named <= decisions_in_the_document()
    assert named <= decisions_with_a_test()
