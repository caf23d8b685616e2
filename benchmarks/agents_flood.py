"""Figure: our process while an agent writes without end.

Each flood runs in its own process: `python -m benchmarks.agents_flood` with the two arguments of `report`.
"""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, process_time

import msgspec
from msgspec import Struct

from benchmarks.agents_stage import RESULT, own_folder, played_by, prompt, python, scripted
from benchmarks.report import Figure, duration
from bullpen.agents import AgentSpec, run_turn
from bullpen.errors import AgentFailed
from bullpen.turn_events import Event

GOAL_BYTES = 150_000_000
SIZE, QUICK_SIZE = 10_000_000_000, 200_000_000
TICK_SECONDS = 0.005
STATUS = Path("/proc/self/status")

# Writes a block many times, each time with a new number instead of %d, and then a result.
REPEAT = """
import os
block, left, number = {block}, {size}, 0
numbered = b"%d" in block[:200]
while left > 0:
    piece = block % number if numbered else block
    left, number = left - len(piece), number + 1
    while piece:
        piece = piece[os.write(1, piece):]
os.write(1, b"\\n" + {result!r} + b"\\n")
"""
THOUGHT = (
    '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta",'
    '"thinking":"Let me look at this."}},"session_id":"ac39b2a9-02d5-46b7-9263-84848af52ce4","parent_tool_use_id":null}'
)
PIECE = '{"type":"message","timestamp":"2026-11-15T08:23:38.480Z","role":"assistant","content":"消息太长","delta":true}'
MESSAGE = '{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_%d"}},"parent_tool_use_id":null}'


class Peak(Struct, kw_only=True):
    """What one process measured."""

    written: int
    before: int
    """Bytes in memory before the turn."""
    highest: int
    seconds: float
    """CPU time of our process."""
    longest_stop: float
    """Seconds in which nothing else in our process could run."""
    ending: str


class Flood(Struct, kw_only=True):
    """An agent that writes a number of bytes, or a share of them where all would take too long."""

    cli: str = "claude"
    command: Callable[[int], tuple[str, ...]]
    share: float = 1.0


def measure(*, quick: bool) -> Figure:
    """Run every kind of flood through run_turn and measure our highest memory use."""
    size = QUICK_SIZE if quick else SIZE
    peaks = {name: _peak(name, size) for name in FLOODS}
    return Figure(
        title="An agent that writes without end",
        goal=f"our process stays under {GOAL_BYTES / 1e6:g} MB",
        met=all(peak.highest < GOAL_BYTES for peak in peaks.values()),
        measured=f"at most {max(peak.highest for peak in peaks.values()) / 1e6:.0f} MB",
        columns=("the agent writes", "up to", "before", "highest", "CPU time", "longest stop", "ends as"),
        rows=[_row(name, peak) for name, peak in peaks.items()],
        meaning="Resident memory of a process that does nothing else. Lines that are not events are counted and "
        "dropped, a line is cut at 8 MiB, an answer is stopped at 16 MiB. The longest stop is the wall-clock "
        "time in which our event loop could do nothing for other agents.",
    )


def _peak(name: str, size: int) -> Peak:
    command = [sys.executable, "-m", "benchmarks.agents_flood", name, str(size)]
    return msgspec.json.decode(subprocess.run(command, check=True, capture_output=True).stdout, type=Peak)


def _row(name: str, peak: Peak) -> tuple[str, ...]:
    return (
        name,
        f"{peak.written / 1e9:g} GB" if peak.written >= 1e9 else f"{peak.written / 1e6:g} MB",
        f"{peak.before / 1e6:.0f} MB",
        f"{peak.highest / 1e6:.0f} MB" if peak.highest < GOAL_BYTES else f"**{peak.highest / 1e6:.0f} MB**",
        duration(peak.seconds),
        duration(peak.longest_stop),
        peak.ending,
    )


def report(name: str, size: str) -> Peak:
    """Return the effect of a flood on this process."""
    flood = FLOODS[name]
    written = round(int(size) * flood.share)
    spec = played_by(flood.cli, *flood.command(written))
    before, began = _highest(), process_time()
    with own_folder() as folder:
        ending, longest_stop = asyncio.run(_turn(spec, folder))
    return Peak(
        written=written,
        before=before,
        highest=_highest(),
        seconds=process_time() - began,
        longest_stop=longest_stop,
        ending=ending,
    )


async def _turn(spec: AgentSpec, folder: Path) -> tuple[str, float]:
    """Return how the turn ended, and the longest time in which the loop did nothing else."""
    stops = [0.0]
    watching = asyncio.ensure_future(_watch(stops))
    try:
        await run_turn(spec, prompt(spec), emit=_nobody, cwd=folder)
    except AgentFailed as error:
        return error.event.kind, stops[0]
    finally:
        watching.cancel()
    return "finished", stops[0]


async def _watch(stops: list[float]) -> None:
    while True:
        due = monotonic() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        stops[0] = max(stops[0], monotonic() - due)


def _nobody(_: Event) -> None:
    pass


def _highest() -> int:
    """Return the most memory that this process has had. getrusage may report the process before exec instead."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _noise(to: str) -> Callable[[int], tuple[str, ...]]:
    return lambda size: scripted("claude", [{"flood": size, "line": 1000, "to": to}, {"say": "ok"}])


def _repeated(block: str) -> Callable[[int], tuple[str, ...]]:
    """Return a program that repeatedly writes the bytes of a Python expression."""
    return lambda size: python(REPEAT.format(block=block, size=size, result=RESULT.encode()))


def _lines(line: str, times: int = 1) -> str:
    block = f"{line}\n".encode()
    return f"{block!r} * {times}"


FLOODS = {
    "lines that are not events": Flood(command=_noise("stdout")),
    "the same to stderr": Flood(command=_noise("stderr")),
    "one line": Flood(command=_repeated("b'x' * 65536")),
    "thoughts": Flood(command=_repeated(_lines(THOUGHT, 256)), share=0.2),
    "an answer in pieces of four characters": Flood(cli="gemini", command=_repeated(_lines(PIECE, 512)), share=0.1),
    "new messages": Flood(command=_repeated(_lines(MESSAGE)), share=0.1),
    "lines of one character": Flood(command=_repeated(_lines("x", 32768)), share=0.001),
    "lists of lists": Flood(
        command=_repeated("""b'{"type":"user","x":[' + b'[],' * 2_700_000 + b'[]]}\\n'"""), share=0.002
    ),
}

if __name__ == "__main__":
    print(json.dumps(msgspec.to_builtins(report(*sys.argv[1:]))))
