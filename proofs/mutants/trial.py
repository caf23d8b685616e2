"""Make each planted mistake, and see whether the tests nearest to it notice: `python -m proofs.mutants.trial`.

A test counts only if it passes without the mistake. A mistake that the nearest tests miss is tried with all tests of
their folders. What noticed each of them before the tests changed is in planted.json.
"""

import argparse
import json
import re
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Literal

from msgspec import Struct
from proofs.mutants.copies import SOURCES, copied, mistaken, run_tests
from proofs.mutants.mistakes import named_mistake
from proofs.mutants.planted import PLANTED, Planted

ROOT = Path(__file__).parents[2]
BEFORE = Path(__file__).with_name("planted.json")
LEFT_OUT = ("torture", "foreign")
"""Markers of the tests that `make test` leaves out, as far as they are registered."""
FOREIGN_FOLDERS = ("real_cli", "browser", "postgres")
"""Where such tests are, which would only be collected for nothing."""
TEST_SECONDS = 60
NEAR_SECONDS = 240.0
FOLDER_SECONDS = 600.0
NOTHING_SELECTED = 5
_NOTICED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_CASE = re.compile(r"\[.*", re.DOTALL)

Fate = Literal["killed", "survived", "unclear"]


class Tried(Struct, frozen=True):
    """A mistake, and what became of it."""

    planted: Planted
    fate: Fate
    test: str
    """What noticed it."""
    seconds: float


class Trial:
    """The tests of one state of the project."""

    def __init__(self, tree: Path, *, only_near: bool) -> None:
        python = tree / ".venv" / "bin" / "python"
        self._tree = tree
        self._python = str(python) if python.exists() else sys.executable
        self._only_near = only_near
        settings = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
        registered = {marker.partition(":")[0] for marker in settings.get("markers", [])}
        expression = " and ".join(f"not {name}" for name in LEFT_OUT if name in registered)
        ignored = [f"--ignore-glob=*/{folder}/*" for folder in FOREIGN_FOLDERS]
        self._options = ["-rfE", f"--timeout={TEST_SECONDS}", "-m", expression, *ignored]

    def of(self, planted: Planted, place: Path) -> Tried:
        """Try one mistake in a copy."""
        began, source = monotonic(), (place / SOURCES / planted.module).read_text()
        with mistaken(place, named_mistake(planted.module, source, planted.before, planted.after)):
            test = self._noticed(planted, place)
        fate: Fate = "killed" if test else "survived"
        if test and self._first_failure(place, [_CASE.sub("", test)], NEAR_SECONDS):
            fate = "unclear"
        return Tried(planted, fate, test, monotonic() - began)

    def _noticed(self, planted: Planted, place: Path) -> str:
        near = list(dict.fromkeys(path for pattern in planted.near for path in _tests(place, pattern)))
        for words in dict.fromkeys((planted.words, "")):
            if test := self._first_failure(place, near, NEAR_SECONDS, words):
                return test
        folders = dict.fromkeys(f"tests/{Path(pattern).parent}" for pattern in planted.near)
        return "" if self._only_near else self._first_failure(place, list(folders), FOLDER_SECONDS)

    def _first_failure(self, place: Path, tests: list[str], seconds: float, words: str = "") -> str:
        """Return the first test that fails; nothing if none does, or none is there."""
        if not tests:
            return ""
        done = run_tests(place, [*self._options, *(("-k", words) if words else ()), *tests], seconds, self._python)
        if done is None:
            return f"{tests[0]} (too slow)"
        if done.returncode in (0, NOTHING_SELECTED):
            return ""
        noticed = _NOTICED.search(done.stdout)
        return noticed[1] if noticed else f"{tests[0]} (exit code {done.returncode})"


def _tests(place: Path, pattern: str) -> list[str]:
    found = sorted((place / "tests").glob(pattern))
    return [str(path.relative_to(place)) for path in found if path.match("test_*.py")]


def main() -> int:
    """Try them all, print each at once, and the count at the end."""
    parser = argparse.ArgumentParser(prog="python -m proofs.mutants.trial", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mistakes with one of these in their module or description")
    parser.add_argument("--tree", type=Path, default=ROOT, help="another state of the project, with its own .venv")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only-near", action="store_true", help="do not try all tests of the folders")
    parser.add_argument("--record", type=Path, help="write what noticed each of them to this file")
    options = parser.parse_args()
    chosen = [one for one in PLANTED if not options.words or any(word in f"{one}" for word in options.words)]
    trial, known = Trial(options.tree.resolve(), only_near=options.only_near), json.loads(BEFORE.read_text())
    with tempfile.TemporaryDirectory(prefix="bullpen-planted-") as name:
        places: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.workers):
            places.put(copied(options.tree.resolve(), Path(name, str(number))))

        def work(planted: Planted) -> Tried:
            place = places.get()
            try:
                return _shown(trial.of(planted, place), known)
            finally:
                places.put(place)

        with ThreadPoolExecutor(options.workers) as threads:
            tried = list(threads.map(work, chosen))
    if options.record is not None:
        found = {one.planted.about: one.test for one in tried if one.fate == "killed"}
        options.record.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return judged(tried)


def _shown(tried: Tried, known: dict[str, str]) -> Tried:
    planted = tried.planted
    print(f"{tried.fate} ({tried.seconds:.0f} s): {planted.module}: {planted.about}")
    print(f"    by {tried.test or 'nothing'}; before by {known.get(planted.about, 'nothing')}", flush=True)
    return tried


def judged(tried: list[Tried]) -> int:
    """Print what became of all mistakes, and return 1 if one was not noticed."""
    counted = {fate: sum(one.fate == fate for one in tried) for fate in ("killed", "survived", "unclear")}
    print(f"\n{len(tried)} mistakes: " + ", ".join(f"{count} {fate}" for fate, count in counted.items()))
    return int(counted["killed"] < len(tried))


if __name__ == "__main__":
    sys.exit(main())
