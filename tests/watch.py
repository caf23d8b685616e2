"""Whenever a file is saved, run the tests that it touches: `make watch`.

A test file is touched by itself, by what it imports of the project, directly or not, and by the files beside it that it
uses. Nothing else is run, so `make test` has the last word.
"""

import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests")
LOOK_SECONDS = 0.5
IMPORT = re.compile(r"^\s*(?:from|import) ((?:bullpen|tests)\b[\w.]*)(?: import (\([^)]*\)|.*))?", re.MULTILINE)
WORD = re.compile(r"\w+")
DEPTH = 2
"""How many imports away a change still counts: a test that imports the world is not touched by all of it."""


def main() -> None:
    """Look for changes until somebody presses Ctrl-C."""
    print("Waiting for a file to be saved. Ctrl-C ends it.", flush=True)
    before = snapshot()
    while True:
        time.sleep(LOOK_SECONDS)
        after = snapshot()
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        before = after
        if changed:
            run(touched(changed))


def snapshot() -> dict[Path, int]:
    """Return when each file was written."""
    return {path: path.stat().st_mtime_ns for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}


def touched(changed: set[Path]) -> list[Path]:
    """Return the test files that a change of these files touches."""
    imports.cache_clear()
    file_of.cache_clear()
    names = {name for path in changed for name in module_names(path)}
    return [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path in changed or names & reach(path)]


def module_names(path: Path) -> set[str]:
    """Return how others import a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    return {".".join(parts).removesuffix(".__init__")}


def reach(path: Path) -> set[str]:
    """Return what a file imports of the project, and what that imports."""
    names: set[str] = set()
    files = {path}
    for _ in range(DEPTH):
        found = {name for file in files for name in imports(file)} - names
        names |= found
        files = {file for name in found if (file := file_of(name)) is not None}
    return names


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules of the project that a file names."""
    return _imports(path, path.stat().st_mtime_ns) if path.exists() else frozenset()


@cache
def _imports(path: Path, _: int) -> frozenset[str]:
    found = set()
    for module, names in IMPORT.findall(path.read_text(encoding="utf-8")):
        found |= {module, *(f"{module}.{name}" for name in WORD.findall(names))}
    return frozenset(found)


@cache
def file_of(name: str) -> Path | None:
    """Return the file of a module."""
    base = ROOT / ("src" if name.startswith("bullpen.") else "") / name.replace(".", "/")
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)


def run(paths: list[Path]) -> None:
    """Run these tests, and say so if there are none."""
    if not paths:
        print("No test imports what changed; `make test` tests all.", flush=True)
        return
    names = [str(path.relative_to(ROOT)) for path in paths]
    print(f"{len(names)} files: {' '.join(names[:8])}{' ...' if len(names) > 8 else ''}", flush=True)
    workers = ["-n", "auto", "--dist", "worksteal"] if len(names) > 2 else ["-n", "0"]
    command = [sys.executable, "-m", "pytest", "-q", *workers, "-m", "not foreign and not torture", *names]
    subprocess.run(command, cwd=ROOT, check=False)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
