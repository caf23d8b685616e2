"""The usual commands that run the tests of a project, told by the files in its folder."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

MAX_CHARACTERS = 1_000_000
PYTEST_SETTINGS = {
    "pytest.ini": "",
    "conftest.py": "",
    "pyproject.toml": "pytest",
    "setup.cfg": "pytest",
    "tox.ini": "pytest",
    "requirements.txt": "pytest",
}
"""Files that mean that the project is tested with pytest, and the word that must be in them."""
OWN_PYTEST = ".venv/bin/pytest"
NO_NPM_TEST = "no test specified"
"""What `npm init` writes as the test."""
NODE_LOCKS = {"pnpm-lock.yaml": "pnpm test", "yarn.lock": "yarn test", "bun.lock": "bun run test"}


def usual_tests(folder: Path) -> tuple[str, ...]:
    """Return the commands that run the tests in this folder, as people usually type them; none if none is found."""
    return tuple(_commands(folder))


def runnable_tests(folder: Path) -> str:
    """Return the first of these commands whose program is on this machine; nothing if there is none.

    pytest is often installed in the project's own environment only.
    """
    usual = usual_tests(folder)
    own = [OWN_PYTEST] if "pytest" in usual and _is_file(folder / OWN_PYTEST) else []
    return next((command for command in (*own, *usual) if _is_here(command.split()[0], folder)), "")


def _is_here(program: str, folder: Path) -> bool:
    return shutil.which(str(folder / program) if "/" in program else program) is not None


def _commands(folder: Path) -> Iterator[str]:
    if _has_pytest(folder):
        yield "pytest"
        yield "python -m pytest"
    if _has_node_test(_text(folder / "package.json")):
        yield next((command for lock, command in NODE_LOCKS.items() if _is_file(folder / lock)), "npm test")
    for file, command in {"Cargo.toml": "cargo test", "go.mod": "go test", "gradlew": "./gradlew test"}.items():
        if _is_file(folder / file):
            yield command
    if re.search(r"^test\s*:(?!=)", _text(folder / "Makefile"), re.MULTILINE):
        yield "make test"


def _has_pytest(folder: Path) -> bool:
    if any(_is_file(folder / name) and word in _text(folder / name) for name, word in PYTEST_SETTINGS.items()):
        return True
    try:
        return any(any((folder / tests).glob("test_*.py")) for tests in ("tests", "test", "."))
    except OSError:
        return False


def _has_node_test(package: str) -> bool:
    try:
        settings = msgspec.json.decode(package)
    except (msgspec.DecodeError, RecursionError):
        return False
    match settings:
        case {"scripts": {"test": str(script)}}:
            return bool(script) and NO_NPM_TEST not in script
    return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _text(path: Path) -> str:
    """Return the beginning of a file, or nothing if it cannot be read; a pipe is not opened, since it could block."""
    if not _is_file(path):
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_CHARACTERS)
    except OSError:
        return ""
