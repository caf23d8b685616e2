"""Torture: bullpen is killed while agents run that do not want to end, and so is what should end them."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proofs.torture.families import HIDDEN, KINDS, Family
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import ROOT

from bullpen.agents.process_tree import TURN_VARIABLE

KILLS: dict[Size, int] = {"small": 5, "full": 120}
"""How often bullpen alone is killed."""
BOTH: dict[Size, int] = {"small": 3, "full": 40}
"""How often its guardian is killed too."""
STRANGERS: dict[Size, int] = {"small": 10, "full": 300}
LONGEST_SECONDS = 10.0
"""A family that lives longer than this after the kill will not end; how long it took is among the figures."""
FAULT_SECONDS = 2.0
FAULT_STRANGERS = 5
FOUND_BY_KILLING = (
    "orphans are not adopted",
    "children are asked to end, not killed",
    "only the first generation is killed",
    "one generation is killed after the other",
    "a family is killed only after a turn",
)
FOUND_BY_OPENING = (
    "every owner is taken for alive",
    "what was left is only asked to end",
    "the mark of a turn is not looked for",
    "descendants are not looked for",
)
FOUND_BY_STRANGERS = (
    "a pid is enough to be killed",
    "a pid is enough to be an agent",
    "a pid is enough to be alive",
)


class Leftovers:
    """Rounds of kills, and what was counted."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.failures: list[str] = []
        self.figures: Counter[str] = Counter()
        self.slowest = 0.0

    def kill(self, number: int) -> None:
        """Kill bullpen alone."""
        kinds = self._some(list(KINDS))
        with _family(kinds) as family, _bystander() as bystander:
            time.sleep(self.random.uniform(0, 0.2))
            self._count(family, kinds, "bullpens killed alone")
            began = time.monotonic()
            family.kill_bullpen()
            family.is_gone_within(LONGEST_SECONDS)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.failures += [f"kill {number}: {broken}" for broken in _alive(family, 0)]
            self._look_at(bystander, f"kill {number}")

    def kill_both(self, number: int) -> None:
        """Kill bullpen and its guardian, and open the conversation again."""
        kinds = self._some([kind for kind in KINDS if kind != HIDDEN])
        with _family(kinds) as family, _bystander() as bystander:
            self._count(family, kinds, "bullpens killed together with their guardians")
            family.kill_bullpen_and_guardian()
            family.open_again()
            self.failures += [f"opening {number}: {broken}" for broken in _alive(family, 0)]
            self._look_at(bystander, f"opening {number}")

    def _some(self, kinds: Sequence[str]) -> list[str]:
        return self.random.choices(kinds, k=self.random.randint(1, 6))

    def _count(self, family: Family, kinds: Sequence[str], what: str) -> None:
        self.figures[what] += 1
        self.figures["processes that were alive at a kill"] += len(family.members)
        self.figures.update(f"members of families, begun as: {kind}" for kind in kinds)

    def _look_at(self, bystander: "subprocess.Popen[bytes]", when: str) -> None:
        self.figures["bystanders of another turn, left alone"] += bystander.poll() is None
        if bystander.poll() is not None:
            self.failures.append(f"{when}: a process of another turn was ended")


def run(size: Size, seed: int) -> Outcome:
    """Kill, open again, and let strangers have the pids of the dead."""
    if sys.platform != "linux":
        return Outcome(tried=0, unit="kills", skipped="only Linux has guardians")
    leftovers = Leftovers(seed)
    for number in range(KILLS[size]):
        leftovers.kill(number)
    for number in range(BOTH[size]):
        leftovers.kill_both(number)
    leftovers.failures += _strangers(STRANGERS[size])
    figures = {
        **dict(sorted(leftovers.figures.items())),
        "strangers with the pid of a dead agent": STRANGERS[size],
        "longest from a kill of bullpen alone to the end of the family, in milliseconds": round(
            1e3 * leftovers.slowest
        ),
    }
    tried = KILLS[size] + BOTH[size]
    return Outcome(tried=tried, unit="kills", failures=tuple(leftovers.failures), figures=figures)


def run_with_fault(seed: int) -> Outcome:
    """Make one mistake after the other. Failures are returned only if each was found."""
    found: dict[str, list[str]] = {}
    for mistake in FOUND_BY_KILLING:
        with _family(list(KINDS), mistake) as family:
            family.kill_bullpen()
            found[mistake] = _alive(family, FAULT_SECONDS)
    for mistake in FOUND_BY_OPENING:
        with _family([kind for kind in KINDS if kind != HIDDEN]) as family:
            family.kill_bullpen_and_guardian()
            family.open_again(mistake)
            found[mistake] = _alive(family, 0)
    for mistake in FOUND_BY_STRANGERS:
        found[mistake] = _strangers(FAULT_STRANGERS, mistake)
    failures = [f"seed {seed}, {mistake}: {broken}" for mistake, all_broken in found.items() for broken in all_broken]
    missed = {f"not found: {mistake}": 1 for mistake, all_broken in found.items() if not all_broken}
    return Outcome(tried=len(found), unit="mistakes", failures=() if missed else tuple(failures), figures=missed)


def _alive(family: Family, seconds: float) -> list[str]:
    """Return what is wrong after so many seconds: what lives, and whether it still edits."""
    if family.is_gone_within(seconds):
        return ["nothing lives, and yet a file grows"] if family.grows() else []
    edits = ", and edits" if family.grows() else ""
    return [f"{len(family.living())} of {len(family.members)} processes live{edits}: {family.kinds}"]


def _strangers(count: int, mistake: str = "") -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-m", "proofs.torture.reused_pids", str(count), mistake, folder]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, check=True)
    broken: list[str] = json.loads(done.stdout)
    return broken


@contextmanager
def _family(kinds: Sequence[str], mistake: str = "") -> Iterator[Family]:
    with tempfile.TemporaryDirectory() as folder, Family(Path(folder, "family"), kinds, fault=mistake) as family:
        yield family


@contextmanager
def _bystander() -> Iterator["subprocess.Popen[bytes]"]:
    environment = os.environ | {TURN_VARIABLE: "another turn"}
    with subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


TORTURE = Torture(
    name="leftovers",
    does="A real bullpen is killed with -9 while its agent runs, which ignores all signals that can be ignored and has "
    "children and orphans that edit files every 50 ms: in its session and in their own, with and without their "
    "environment, and below many generations. In other rounds its guardian is killed together with it, and the "
    "conversation is opened again. Strangers get the pids of dead agents, of their guardians and of bullpen.",
    promise="When bullpen alone is killed, all of the family ends although nobody opens anything; when its guardian is "
    "killed too, all that can be recognised is gone once the conversation is open. No file grows afterwards. No "
    "stranger and no process of another turn is ended.",
    run=run,
    fault="twelve mistakes of one line, one after the other: in the guardian (orphans are not adopted; asked, not "
    "killed; one generation only; one after the other; only after a turn), in what opening does (every owner is alive; "
    "asked, not killed; no marks; no descendants), and a pid is enough to be killed, to be an agent, or to be alive. "
    "Each must be found.",
    seen_as="processes live, and edits",
    run_with_fault=run_with_fault,
    order=42,
)
