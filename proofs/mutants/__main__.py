"""Make small mistakes in the riskiest modules, one at a time, and see whether the tests notice: `make mutants`.

Every run draws some mistakes of each module; with the same seed the same ones. A survivor needs a test, or a line in
survivors.json with the reason why no test can or should notice it; until then, the run fails.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Literal

from msgspec import Struct
from proofs.mutants.copies import SOURCES, copied, mistaken, run_tests
from proofs.mutants.mistakes import Mistake, mistakes_in, named_mistake
from proofs.mutants.named import NAMED
from proofs.mutants.plan import PLAN

ROOT = Path(__file__).parents[2]
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
            places.put(copied(ROOT, Path(name, str(number))))

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
    parser = argparse.ArgumentParser(prog="python -m proofs.mutants", description=__doc__)
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
    began = monotonic()
    with mistaken(place, mistake):
        is_noticed = _fails(place, _tests_of(mistake.module))
    fate: Fate = "killed" if is_noticed else "known" if mistake.name in known else "survived"
    return Tried(mistake, fate, monotonic() - began)


def _fails(place: Path, tests: tuple[str, ...]) -> bool:
    done = run_tests(place, tests, SLOWEST_SECONDS)
    return done is None or done.returncode != 0


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
