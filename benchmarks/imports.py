"""Figure: what importing the library adds to the start of a program."""

import os
import resource
import subprocess
import sys
from functools import partial

from benchmarks.measure import medians
from benchmarks.report import Figure, code, duration, times

GOAL = 2.5
NOTHING, LIBRARY = "pass", "import bullpen.context"
STATEMENTS = (NOTHING, LIBRARY, "from bullpen.context import ContextManager", "import msgspec")


def measure(*, quick: bool) -> Figure:
    """Compare the start of Python with and without the import."""
    starts = {statement: partial(_run, statement) for statement in STATEMENTS}
    taken = medians(starts, rounds=10 if quick else 60, clock=_processor_time_of_children)
    return Figure(
        title="Importing it",
        goal=f"{code(LIBRARY)} makes the start of Python at most {GOAL:g} times as long",
        met=taken[LIBRARY] <= GOAL * taken[NOTHING],
        measured=f"{times(taken[LIBRARY] / taken[NOTHING])} times",
        columns=("python -c …", "time", "ratio"),
        rows=[(code(name), duration(time), times(time / taken[NOTHING])) for name, time in taken.items()],
        meaning="Names are imported when they are first used, so the package alone imports nothing else. The first "
        "name that needs data structures imports msgspec, whose share is in the last line.",
    )


def _run(statement: str) -> None:
    # Compiled modules are kept, as in an installed library.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", statement], check=True, env=environment)


def _processor_time_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
