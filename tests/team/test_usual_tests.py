"""The usual test commands of a project are told by its files."""

import os
from pathlib import Path

import pytest

from bullpen.team.usual_tests import usual_tests
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
