"""`make watch` runs what a change touches, and not everything."""

from pathlib import Path

from tests.watch import ROOT, touched


def names(*changed: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in touched({ROOT / path for path in changed})}


def test_a_change_touches_the_tests_that_import_it() -> None:
    assert "tests/text/test_secrets.py" in names("src/bullpen/text/secrets.py")
    assert "tests/routing/test_obstacles.py" in names("src/bullpen/routing/obstacles.py")


def test_a_test_touches_itself_and_a_helper_its_users() -> None:
    assert names("tests/text/test_secrets.py") == {"tests/text/test_secrets.py"}
    assert "tests/conversation/test_routing.py" in names("tests/conversation/stage.py")


def test_a_change_does_not_touch_everything() -> None:
    every = len(list((ROOT / "tests").rglob("test_*.py")))

    assert 0 < len(names("src/bullpen/web/sessions.py")) < every / 4


def test_a_file_that_is_gone_touches_who_imports_it() -> None:
    assert touched({Path(ROOT, "src/bullpen/nobody_imports_it.py")}) == []
