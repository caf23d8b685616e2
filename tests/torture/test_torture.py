"""Small in `make test`, full in `make torture`: kill -9 at any moment, and teams that would never stop."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("BULLPEN_TORTURE") == "full"
SEED = os.environ.get("BULLPEN_TORTURE_SEED", "1")


def tortured(module: str, count: int, folder: Path) -> dict[str, Any]:
    """Run one of the tortures in a process that forks without harm, and return what it found."""
    program = [sys.executable, "-m", f"tests.torture.{module}", str(count), SEED, str(folder)]
    environment = os.environ | {"BULLPEN_HOME": str(folder / "home")}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    print(f"\n{module}: {json.dumps(found)}")
    return found


def test_kill_9_loses_doubles_and_repeats_nothing(tmp_path: Path) -> None:
    count = 1000 if FULL else 100
    found = tortured("kills", count, tmp_path)
    assert found["problems"] == []
    assert sum(found["kills"].values()) == count
    assert found["acknowledged"] > count / 2
    assert found["runs"] > 0


def test_every_team_that_loops_stops_at_its_cap(tmp_path: Path) -> None:
    count = 1000 if FULL else 50
    found = tortured("loops", count, tmp_path)
    assert found["problems"] == []
    assert found["killed"] == count / 5
    assert sum(found["stops"].values()) == 2 * count
