"""Figure: how long the command line takes to start, compared with bare Python and the vendors' command lines."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.agents_cpu import REAL_CLIS, children_cpu
from benchmarks.agents_stage import own_folder
from benchmarks.measure import Run, medians
from benchmarks.report import Figure, code, duration, times

GOAL = 2.0
HELP, ARGPARSE = "bullpen --help", "python, an empty argparse"
OURS = {
    "python -c pass": ("-c", "pass"),
    "python -c 'import argparse'": ("-c", "import argparse"),
    ARGPARSE: ("-c", "import argparse; argparse.ArgumentParser(prog='bare').print_help()"),
    "bullpen --version": ("-m", "bullpen", "--version"),
    HELP: ("-m", "bullpen", "--help"),
    "bullpen sessions": ("-m", "bullpen", "sessions"),
}
VENDORS = ("claude", "codex", "gemini", "qwen")
ROUNDS, QUICK_ROUNDS, VENDOR_ROUNDS = 60, 10, 5


def measure(*, quick: bool) -> Figure:
    """Start everything in turn, in an empty home folder."""
    with own_folder() as folder:
        starts = {name: partial(_run, [sys.executable, *arguments], folder) for name, arguments in OURS.items()}
        taken = medians(starts, rounds=QUICK_ROUNDS if quick else ROUNDS, clock=children_cpu)
        vendors = _vendors(folder)
        # They take seconds each, so they get fewer rounds.
        if vendors:
            taken |= medians(vendors, rounds=1 if quick else VENDOR_ROUNDS, clock=children_cpu)
    bare, ours = taken[ARGPARSE], taken[HELP]
    return Figure(
        title="Starting the command line",
        goal=f"{code(HELP)} takes at most {GOAL:g} times as long as Python with an empty argparse",
        met=ours <= GOAL * bare,
        measured=f"{times(ours / bare)} times",
        columns=("command", "time", "÷ empty argparse"),
        rows=[(code(name), duration(time), times(time / bare)) for name, time in taken.items()],
        meaning="Processor time of the whole process and its children. No command is imported before it is chosen. "
        "`bullpen sessions` opens an empty database. " + _note(vendors),
    )


def _vendors(folder: Path) -> dict[str, Run]:
    """Return the real CLIs that the tests have installed."""
    found = {name: sorted(REAL_CLIS.glob(f"*/node_modules/.bin/{name}")) for name in VENDORS}
    return {
        f"{name} --version": partial(_run, [str(paths[0]), "--version"], folder)
        for name, paths in found.items()
        if paths
    }


def _note(vendors: dict[str, Run]) -> str:
    if not vendors:
        return "The vendors' command lines are missing: they are not installed under `.cache/real_cli`."
    return "The vendors' command lines are the real ones that the tests install, and only print their version."


def _run(command: list[str], folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    subprocess.run(command, check=True, env=environment | places, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
