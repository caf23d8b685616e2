"""Figure: the CPU time of our own process in a turn, compared with only starting the same program."""

import asyncio
import os
import subprocess
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

from benchmarks.agents_stage import RESULT, own_folder, played_by, prompt
from benchmarks.measure import Run, medians
from benchmarks.report import Figure, duration
from bullpen.agents import run_turn
from bullpen.turn_events import Event

GOAL_SECONDS = 0.0015
GOAL_SHARE = 0.01
HELD_MEGABYTES = (0, 200, 1000)
REAL_CLIS = Path(__file__).parents[1] / ".cache" / "real_cli"

RUN_TURN, ASYNCIO, SUBPROCESS = "run_turn", "asyncio", "subprocess"
PROGRAM = f"#!/bin/sh\nread -r line\necho '{RESULT}'\n"


def measure(*, quick: bool) -> Figure:
    """Compare run_turn with two functions of the standard library, in processes of different sizes."""
    rounds = 30 if quick else 200
    with own_folder() as folder:
        program = folder / "claude"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        taken = {megabytes: _taken(program, megabytes, rounds) for megabytes in HELD_MEGABYTES}
        version = _cpu_of_version(folder)
    return Figure(
        title="The CPU time of a turn",
        goal=f"run_turn uses at most {duration(GOAL_SECONDS)} more CPU time of our process than asyncio's subprocess, "
        f"and at most {GOAL_SHARE:.0%} of what `claude --version` takes",
        met=all(_is_met(times, version) for times in taken.values()),
        measured=_measured(taken, version),
        columns=(
            "our process has",
            "subprocess.run",
            "asyncio",
            "run_turn",
            "more than subprocess",
            "more than asyncio",
            "÷ claude --version",
        ),
        rows=[_row(megabytes, times, version) for megabytes, times in taken.items()],
        meaning=f"CPU time of our process alone, for a program of two lines of sh that prints one result. "
        f"{_version_note(version)} A child created with fork copies the page tables of our process, which takes longer "
        f"the larger it is; a child created with vfork does not.",
    )


def children_cpu() -> float:
    """Return the CPU time of all children that have ended, in seconds."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _taken(program: Path, megabytes: int, rounds: int) -> dict[str, float]:
    held = [bytes(1000) for _ in range(megabytes * 1000)]
    spec = played_by("claude", str(program))
    turn = partial(run_turn, spec, prompt(spec), emit=_nobody, cwd=program.parent)
    with asyncio.Runner() as runner:
        candidates: dict[str, Run] = {
            RUN_TURN: lambda: runner.run(turn()),
            ASYNCIO: lambda: runner.run(_run_with_asyncio(program)),
            SUBPROCESS: partial(_run_with_subprocess, program),
        }
        taken = medians(candidates, rounds=rounds, clock=process_time)
    del held
    return taken


def _nobody(_: Event) -> None:
    pass


async def _run_with_asyncio(program: Path) -> None:
    process = await asyncio.create_subprocess_exec(program, stdin=-1, stdout=-1, stderr=-1, cwd=program.parent)
    await process.communicate(b"hello")


def _run_with_subprocess(program: Path) -> None:
    subprocess.run([program], input=b"hello", capture_output=True, check=True, cwd=program.parent)


def _cpu_of_version(folder: Path) -> float | None:
    """Return the time that the real Claude Code needs to print its version, if the tests have installed it."""
    found = sorted(REAL_CLIS.glob("*/node_modules/.bin/claude"))
    if not found:
        return None
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)}
    run = partial(subprocess.run, [found[0], "--version"], env=environment, capture_output=True, check=True)
    return medians({"version": run}, rounds=15, clock=children_cpu)["version"]


def _measured(taken: dict[int, dict[str, float]], version: float | None) -> str:
    most = max(times[RUN_TURN] - times[ASYNCIO] for times in taken.values())
    return f"{duration(most)} more" + (f", {most / version:.2%}" if version else "")


def _is_met(taken: dict[str, float], version: float | None) -> bool:
    more = taken[RUN_TURN] - taken[ASYNCIO]
    return more <= GOAL_SECONDS and (version is None or more <= GOAL_SHARE * version)


def _row(megabytes: int, taken: dict[str, float], version: float | None) -> tuple[str, ...]:
    more = taken[RUN_TURN] - taken[ASYNCIO]
    return (
        f"{megabytes:,} MB" if megabytes else "nothing",
        duration(taken[SUBPROCESS]),
        duration(taken[ASYNCIO]),
        duration(taken[RUN_TURN]),
        duration(taken[RUN_TURN] - taken[SUBPROCESS]),
        duration(more),
        f"{more / version:.2%}" if version else "not measured",
    )


def _version_note(version: float | None) -> str:
    if version is None:
        return "Claude Code is not installed under `.cache/real_cli`, so there is nothing to compare with."
    return f"`claude --version` takes {duration(version)} of CPU time, and the last column is relative to that."
