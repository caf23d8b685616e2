"""Figure: how long `bullpen --help` takes."""

import os
import subprocess
import sys
from functools import partial

from benchmarks.imports import _processor_time_of_children
from benchmarks.measure import medians
from benchmarks.report import Figure, code, duration, times

GOAL = 2.0
BARE = ("-c", "import argparse; argparse.ArgumentParser(prog='bare').print_help()")
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "python and argparse": BARE,
    "bullpen --help": ("-m", "bullpen", "--help"),
}


def measure(*, quick: bool) -> Figure:
    """Compare the help with that of an empty program."""
    starts = {name: partial(_run, arguments) for name, arguments in COMMANDS.items()}
    taken = medians(starts, rounds=10 if quick else 60, clock=_processor_time_of_children)
    bare, ours = taken["python and argparse"], taken["bullpen --help"]
    return Figure(
        title="Asking for help",
        goal=f"{code('bullpen --help')} takes at most {GOAL:g} times as long as Python with an empty argparse",
        met=ours <= GOAL * bare,
        columns=("command", "time", "ratio"),
        rows=[(code(name), duration(time), times(time / bare)) for name, time in taken.items()],
        meaning="Processor time of the whole process. No command is imported before it is chosen.",
    )


def _run(arguments: tuple[str, ...]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
