"""Figure: the time from an agent's write to our event, against a plain reader of its pipe."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from statistics import median, quantiles
from time import monotonic_ns

from msgspec import Struct

from benchmarks.agents_stage import RESULT, own_folder, played_by, prompt, python
from benchmarks.report import Figure, duration, times
from bullpen.agents import run_turn
from bullpen.turn_events import Event, TextDelta

GOAL_MEDIAN, GOAL_P99 = 2.0, 5.0
AGENTS = (1, 10)
PAUSE_SECONDS = 0.004
LINES, QUICK_LINES = 500, 150
ROUNDS, QUICK_ROUNDS = 9, 3
IGNORED_LINES = 20
"""The first ones, while other agents are still starting."""

# Writes the time every few milliseconds. All processes of a machine have the same clock.
PROGRAM = """
import os, time
for _ in range({lines}):
    time.sleep({pause})
    os.write(1, {delta!r} % time.monotonic_ns())
os.write(1, {result!r})
"""
BEFORE_TIME = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"'
)
AFTER_TIME = b'"}},"session_id":"ac39b2a9-02d5-46b7-9263-84848af52ce4","parent_tool_use_id":null}\n'

Command = tuple[str, ...]
Reader = Callable[[Command, Path], Awaitable[list[int]]]
"""Runs a program and returns the delay of each of its lines, in nanoseconds."""


class Delay(Struct, frozen=True):
    """The delay of lines, in seconds."""

    median: float
    p99: float


def measure(*, quick: bool) -> Figure:
    """Read one agent and ten at once in both ways, alternating, and compare the delays."""
    lines, rounds = (QUICK_LINES, QUICK_ROUNDS) if quick else (LINES, ROUNDS)
    delta, result = BEFORE_TIME + b"%d" + AFTER_TIME, f"{RESULT}\n".encode()
    command = python(PROGRAM.format(lines=lines, pause=PAUSE_SECONDS, delta=delta, result=result))
    with own_folder() as folder:
        delays = {agents: _compared(command, folder, agents, rounds) for agents in AGENTS}
    return Figure(
        title="From an agent's write to our event",
        goal=f"at most {GOAL_MEDIAN:g} times the delay of a plain reader in the median, and {GOAL_P99:g} times at the "
        f"99th percentile",
        met=all(
            ours.median <= GOAL_MEDIAN * plain.median and ours.p99 <= GOAL_P99 * plain.p99
            for plain, ours in delays.values()
        ),
        reason="one late line in a hundred decides the 99th percentile, and that includes anything else the machine "
        "did at that moment.",
        measured="; ".join(
            f"{agents} at once: {times(ours.median / plain.median)} and {times(ours.p99 / plain.p99)} times"
            for agents, (plain, ours) in delays.items()
        ),
        columns=("agents at once", "plain, median", "run_turn", "ratio", "plain, 99th percentile", "run_turn", "ratio"),
        rows=[_row(agents, plain, ours) for agents, (plain, ours) in delays.items()],
        meaning=f"Every agent writes a piece of its answer each {duration(PAUSE_SECONDS)}. The plain reader is "
        f"asyncio's `connect_read_pipe` and `readline` and does not decode the line; run_turn has decoded it and "
        f"created an event. Wall-clock times, medians over {rounds} rounds of {lines} lines from each agent.",
    )


def _compared(command: Command, folder: Path, agents: int, rounds: int) -> tuple[Delay, Delay]:
    """Return the delays of the plain reader and of run_turn, which alternate."""
    plain: list[Delay] = []
    ours: list[Delay] = []
    for _ in range(rounds):
        plain.append(asyncio.run(_delay(_read_plainly, command, folder, agents)))
        ours.append(asyncio.run(_delay(_read_with_run_turn, command, folder, agents)))
    return _typical(plain), _typical(ours)


async def _delay(reader: Reader, command: Command, folder: Path, agents: int) -> Delay:
    found = await asyncio.gather(*(reader(command, folder) for _ in range(agents)))
    delays = [delay / 1e9 for one in found for delay in one[IGNORED_LINES:]]
    return Delay(median(delays), quantiles(delays, n=100, method="inclusive")[-1])


def _typical(delays: Iterable[Delay]) -> Delay:
    return Delay(median(delay.median for delay in delays), median(delay.p99 for delay in delays))


async def _read_with_run_turn(command: Command, folder: Path) -> list[int]:
    delays: list[int] = []

    def emit(event: Event) -> None:
        if isinstance(event, TextDelta):
            delays.append(monotonic_ns() - int(event.text))

    spec = played_by("claude", *command)
    await run_turn(spec, prompt(spec), emit=emit, cwd=folder)
    return delays


async def _read_plainly(command: Command, folder: Path) -> list[int]:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    delays: list[int] = []
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=folder)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), process.stdout)
    while (line := await lines.readline()).startswith(BEFORE_TIME):
        now = monotonic_ns()
        delays.append(now - int(line[len(BEFORE_TIME) : -len(AFTER_TIME)]))
    transport.close()
    await asyncio.to_thread(process.wait)
    return delays


def _row(agents: int, plain: Delay, ours: Delay) -> tuple[str, ...]:
    return (
        str(agents),
        duration(plain.median),
        duration(ours.median),
        times(ours.median / plain.median),
        duration(plain.p99),
        duration(ours.p99),
        times(ours.p99 / plain.p99),
    )
