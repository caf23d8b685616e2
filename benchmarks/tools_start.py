"""Figure: what an agent's CLI pays for the MCP server of its turn: starting it, until it has listed its tools."""

import os
import subprocess
import sys
from functools import partial

from benchmarks.agents_cpu import children_cpu
from benchmarks.measure import medians
from benchmarks.report import Figure, code, duration, times
from bullpen.tools.door import SERVER

GOAL = 3.0
OURS, BARE = "bullpen mcp", "python -c pass"
PROGRAMS = {
    BARE: ("-c", "pass"),
    "python, which imports json": ("-c", "import json"),
    OURS: ("-P", SERVER, os.devnull),
    "the same server with the public SDK": ("-c", "import mcp.server.stdio, mcp.server.lowlevel"),
}
REQUESTS = b"".join(
    b'{"jsonrpc": "2.0", "id": %d, "method": "%s", "params": {}}\n' % (number, method)
    for number, method in enumerate((b"initialize", b"tools/list"))
)
ROUNDS, QUICK_ROUNDS = 40, 8


def measure(*, quick: bool) -> Figure:
    """Start each in turn, and let it answer what every client asks first."""
    starts = {name: partial(_run, [sys.executable, *arguments]) for name, arguments in PROGRAMS.items()}
    taken = medians(starts, rounds=QUICK_ROUNDS if quick else ROUNDS, clock=children_cpu)
    ratio = taken[OURS] / taken[BARE]
    return Figure(
        title="Starting the tools of a turn",
        goal=f"{code(OURS)} takes at most {GOAL:g} times as long as bare Python",
        met=ratio <= GOAL,
        measured=f"{times(ratio)} times",
        columns=("program", "time", "÷ bare Python"),
        rows=[(code(name), duration(time), times(time / taken[BARE])) for name, time in taken.items()],
        meaning="Processor time of the whole process, from its start to its end. Ours answers `initialize` and "
        "`tools/list`, as a CLI asks them at the beginning of each turn. With the SDK, only its import is counted.",
    )


def _run(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, env=environment, input=REQUESTS, stdout=subprocess.DEVNULL)
