"""The usual test commands of a project are told by its files."""

import os
from pathlib import Path

import pytest

from bullpen.team.usual_tests import OWN_PYTEST, runnable_tests, usual_tests
from bullpen.text.plain_commands import is_plain_command

PYTEST = ("pytest", "python -m pytest")


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({}, ()),
        ({"pytest.ini": ""}, PYTEST),
        ({"pyproject.toml": "[tool.pytest.ini_options]"}, PYTEST),
        ({"pyproject.toml": "[project]"}, ()),
        ({"tests/test_price.py": ""}, PYTEST),
        ({"tests/price.rb": ""}, ()),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, ("npm test",)),
        ({"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""}, ("pnpm test",)),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ()),
        ({"package.json": '{"scripts": {"build": "tsc"}}'}, ()),
        ({"package.json": '{"scripts": []}'}, ()),
        ({"package.json": "{" * 100_000}, ()),
        ({"package.json": "[" * 100_000}, ()),
        ({"Cargo.toml": ""}, ("cargo test",)),
        ({"go.mod": ""}, ("go test",)),
        ({"gradlew": ""}, ("./gradlew test",)),
        ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, ("make test",)),
        ({"Makefile": "test := x\ntests: all\n"}, ()),
        ({"conftest.py": "", "Makefile": "test:\n"}, (*PYTEST, "make test")),
    ],
)
def test_commands_are_told_by_files(files: dict[str, str], commands: tuple[str, ...], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    assert usual_tests(tmp_path) == commands
    assert all(map(is_plain_command, commands))


def test_what_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "package.json")
    (tmp_path / "Makefile").mkdir()
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "tests").symlink_to("tests")

    assert usual_tests(tmp_path) == ()
    assert usual_tests(tmp_path / "nowhere") == ()


def test_of_several_commands_the_first_runs_whose_program_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "Makefile").write_text("test:\n\ttrue\n")
    assert runnable_tests(tmp_path) == ""

    for program, command in (("bin/make", "make test"), ("bin/pytest", "pytest"), (OWN_PYTEST, OWN_PYTEST)):
        file = tmp_path / program
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o755)
        assert runnable_tests(tmp_path) == command
