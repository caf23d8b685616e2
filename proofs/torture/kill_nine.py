"""kill -9 at random moments and at every named point; kills.py does it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import ROOT, scratch

MOMENTS: dict[Size, int] = {"small": 30, "full": 1000}
"""How often at random."""
ROUNDS: dict[Size, int] = {"small": 1, "full": 24}
"""How often at each named point."""


def run(size: Size, seed: int) -> Outcome:
    """Kill one conversation again and again."""
    return _outcome(tortured("kills", str(MOMENTS[size]), str(ROUNDS[size]), str(seed)))


def run_with_fault(seed: int) -> Outcome:
    """Do it with a store that does not end the turns of a killed process."""
    return _outcome(tortured("planted", "kills", "15", str(seed)))


def tortured(module: str, *arguments: str, in_memory: bool = False) -> dict[str, Any]:
    """Run a torture in a process that forks without harm, and return what it found."""
    with scratch() if in_memory else tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-m", f"proofs.torture.{module}", *arguments, str(folder)]
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        environment = os.environ | {"BULLPEN_HOME": str(Path(folder) / "home"), "PYTHONPATH": paths}
        done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _outcome(found: dict[str, Any]) -> Outcome:
    kills = {f"killed {where}": count for where, count in sorted(found["kills"].items(), reverse=True)}
    figures = {
        **kills,
        "different named points": found["points"],
        "messages acknowledged": found["acknowledged"],
        "runs of agents": found["runs"],
    }
    figures["slowest opening after a kill, in milliseconds"] = round(1000 * found["slowest_opening"])
    return Outcome(tried=sum(found["kills"].values()), unit="kills", failures=tuple(found["problems"]), figures=figures)


TORTURE = Torture(
    name="kill -9",
    does=(
        "A process in which a person talks, decides, cancels and reorders, and a team of agents answers, is killed: at "
        "random moments, and before and after every call of the store, within a commit, and around an agent."
    ),
    promise=(
        "nothing acknowledged is lost or doubled, no agent runs twice for one turn, every turn that ran is put before "
        "a person, every turn is in one state, and `fsck` finds nothing."
    ),
    run=run,
    fault="what a killed process ran is taken for something that still runs.",
    seen_as=r"Turn \d+ is running, not",
    run_with_fault=run_with_fault,
    order=5,
)
