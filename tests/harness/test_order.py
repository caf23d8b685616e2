"""Tests wait for events, not for time; and their folders are those of the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOMENT_SECONDS = 0.05
"""A loop that looks whether something has happened may wait that long between two looks."""
FOR_EVER_SECONDS = 60
"""Who waits that long waits to be ended."""
OTHER_FOLDERS = {"harness", "agents/recordings", "agents/real_cli", "context/spec", "web/browser"}
"""Of all tests, of what several tests read, of the five texts, and of programs that are not ours."""


def calls_that_wait(tree: ast.AST) -> Iterator[tuple[int, float]]:
    """Yield the line and the seconds of each sleep in code, and of each scripted one."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="sleep"), args=[ast.Constant(value=int() | float() as seconds)]):
                yield node.lineno, seconds
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    match key, value:
                        case ast.Constant(value="sleep"), ast.Constant(value=int() | float() as seconds):
                            yield node.lineno, seconds


def measurements(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which time is measured; a deadline is no measurement."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="process_time" | "perf_counter") | ast.Attribute(attr="process_time" | "perf_counter"):
                yield node.lineno
            case ast.BinOp(op=ast.Sub(), left=ast.Call(func=ast.Attribute(attr="monotonic"))):
                yield node.lineno


def sources(*words: str) -> Iterator[tuple[Path, ast.AST]]:
    """Yield each file of the tests that has one of these words, and its tree."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if any(word in source for word in words):
            yield path.relative_to(ROOT), ast.parse(source)


def test_no_test_waits_for_time() -> None:
    found = [
        f"{path}:{line} waits {seconds} s"
        for path, tree in sources("sleep")
        for line, seconds in calls_that_wait(tree)
        if MOMENT_SECONDS < seconds < FOR_EVER_SECONDS
    ]

    assert found == []


def test_no_test_measures_time() -> None:
    found = [
        f"{path}:{line}"
        for path, tree in sources("process_time", "perf_counter", "monotonic")
        for line in measurements(tree)
    ]

    assert found == []


def test_folders_of_tests_are_those_of_the_source() -> None:
    source = {
        str(path.relative_to(ROOT / "src/bullpen")) for path in (ROOT / "src/bullpen").rglob("*") if path.is_dir()
    }
    tests = {str(path.parent.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("*.py")} - {"."}

    assert {name for name in tests if name not in source and not name.startswith(tuple(OTHER_FOLDERS))} == set()
