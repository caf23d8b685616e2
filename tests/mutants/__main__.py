"""Make small mistakes in the riskiest modules, one at a time, and see whether the tests notice: `make mutants`.

Every run draws some mistakes of each module; with the same seed the same ones. A survivor needs a test, or a line in
survivors.json with the reason why no test can or should notice it; until then, the run fails.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Literal

from msgspec import Struct
from tests.mutants.mistakes import Mistake, mistakes_in, named_mistake
from tests.mutants.named import NAMED
from tests.mutants.plan import PLAN

ROOT = Path(__file__).parents[2]
SOURCES = Path("src/bullpen")
KNOWN = Path(__file__).with_name("survivors.json")
EACH = 6
SLOWEST_SECONDS = 600.0

Fate = Literal["killed", "survived", "known"]


class Tried(Struct, frozen=True):
    """A mistake, and what became of it."""

    mistake: Mistake
    fate: Fate
    seconds: float


def main() -> int:
    """Try mistakes, print each survivor at once, and the count at the end."""
    options = _options()
    known: dict[str, str] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    drawn = [mistake for module in options.modules or PLAN for mistake in _chosen(module, options)]
    chosen = [*(_named(options.modules) if options.named else ()), *drawn]
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="bullpen-mutants-") as name:
        places: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            places.put(_copied(Path(name, str(number))))

        def work(mistake: Mistake) -> Tried:
            place = places.get()
            try:
                return _tried(mistake, place, known)
            finally:
                places.put(place)

        with ThreadPoolExecutor(workers) as threads:
            for tests in threads.map(partial(_broken_anyway, places), {_tests_of(one.module) for one in chosen}):
                if tests:
                    print(f"Without any mistake, these tests fail, so they say nothing: {' '.join(tests)}")
                    return 2
            tried = [_shown(one) for one in threads.map(work, chosen)]
    return _judged(tried, options.seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="below src/bullpen; all that are in the plan if none is named")
    parser.add_argument("--each", type=int, default=EACH, help="how many mistakes in each module")
    parser.add_argument("--no-named", dest="named", action="store_false", help="leave out those that once survived")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _chosen(module: str, options: argparse.Namespace) -> list[Mistake]:
    every = mistakes_in(module, (ROOT / SOURCES / module).read_text())
    if options.each >= len(every):
        return every
    return random.Random(f"{options.seed} {module}").sample(every, options.each)


def _named(modules: list[str]) -> list[Mistake]:
    return [
        named_mistake(module, (ROOT / SOURCES / module).read_text(), before, after)
        for module, before, after in NAMED
        if not modules or module in modules
    ]


def _copied(place: Path) -> Path:
    """Copy what the tests need, so that nobody else sees the mistakes."""
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules")
    for folder in ("src", "tests", "docs", "benchmarks", "examples"):
        if (ROOT / folder).exists():
            shutil.copytree(ROOT / folder, place / folder, ignore=ignore)
    for file in ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, place)
    return place


def _broken_anyway(places: SimpleQueue[Path], tests: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tests if they fail as things are."""
    place = places.get()
    try:
        return tests if _fails(place, tests) else ()
    finally:
        places.put(place)


def _tests_of(module: str) -> tuple[str, ...]:
    return PLAN.get(module, ("tests",))


def _tried(mistake: Mistake, place: Path, known: dict[str, str]) -> Tried:
    """Run the module's tests with a mistake in it."""
    file = place / SOURCES / mistake.module
    source = file.read_text()
    began = monotonic()
    file.write_text(mistake.applied(source))
    try:
        is_noticed = _fails(place, _tests_of(mistake.module))
    finally:
        file.write_text(source)
    fate: Fate = "killed" if is_noticed else "known" if mistake.name in known else "survived"
    return Tried(mistake, fate, monotonic() - began)


def _fails(place: Path, tests: tuple[str, ...]) -> bool:
    environment = {**os.environ, "PYTHONPATH": f"{place / 'src'}{os.pathsep}{place}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", *tests]
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, check=False, timeout=SLOWEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def _shown(tried: Tried) -> Tried:
    mistake = tried.mistake
    if tried.fate != "killed":
        print(f"{tried.fate}: {mistake.name}  (line {mistake.line}, {tried.seconds:.0f} s)", flush=True)
    return tried


def _judged(tried: list[Tried], seed: int) -> int:
    """Print what became of all mistakes, and return 1 if one survived that nobody has given a reason for."""
    counted = {fate: sum(one.fate == fate for one in tried) for fate in ("killed", "known", "survived")}
    noticed = counted["killed"] / max(1, len(tried) - counted["known"])
    print(
        f"\nseed {seed}: {len(tried)} mistakes in {len({one.mistake.module for one in tried})} modules: "
        f"{counted['killed']} killed, {counted['survived']} survived, {counted['known']} known not to matter: "
        f"{noticed:.1%} of those that matter are killed"
    )
    if counted["survived"]:
        print(f"Each that survived needs a test, or a reason in {KNOWN.relative_to(ROOT)}.")
    return int(counted["survived"] > 0)


if __name__ == "__main__":
    sys.exit(main())
