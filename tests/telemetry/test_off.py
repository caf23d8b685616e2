"""Off, which is the default: nothing of it is loaded, and nothing is asked of anybody."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conversation.stage import Stage
from tests.telemetry.collector import Collector

from bullpen.errors import how_to_install

PROGRAM = """
import asyncio, sys
from pathlib import Path
from bullpen.app import open_team
from bullpen.testing.site import site

async def main(team, folder):
    async with open_team(team, db=Path(folder, "a.db")) as conversation:
        await conversation.say("Which fruit?")
        await conversation.until_quiet()
    async with site(Path(folder), Path(team)) as served:
        await served.hub.begin()

asyncio.run(main(*sys.argv[1:]))
ours = ("opentelemetry", "prometheus_client", "google.protobuf", "requests", "bullpen.telemetry")
print(sorted(name for name in sys.modules if name.startswith(ours)))
"""


def run(program: str, stage: Stage) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program, str(stage.write()), str(stage.folder)]
    return subprocess.run(command, cwd=Path(stage.folder), capture_output=True, text=True, check=False)


def test_nothing_of_it_is_loaded(stage: Stage, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BULLPEN_TELEMETRY")

    done = run(PROGRAM, stage)

    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert not collector.was_asked.is_set()


def test_the_same_program_loads_it_if_that_is_asked_for(stage: Stage, collector: Collector) -> None:
    done = run(PROGRAM, stage)

    assert "'opentelemetry.sdk.trace'" in done.stdout
    assert collector.was_asked.is_set()


def test_who_asks_for_it_without_its_packages_is_told(stage: Stage) -> None:
    without = "import sys\nsys.modules['opentelemetry'] = None\n"
    command = "from bullpen.cli import main\nsys.exit(main(['run', '--trust', sys.argv[1], 'Which fruit?']))"

    done = run(without + command, stage)

    assert done.returncode != 0
    assert how_to_install("telemetry") in done.stderr
    assert "Traceback" not in done.stderr
