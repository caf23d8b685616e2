"""Torture: agents that flood, break off, hang, and leave processes behind."""

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from benchmarks.agents_flood import FLOODS, GOAL_BYTES
from proofs.torture.agent_cuts import Cut, every_cut, played_as_a_process, wrong_with
from proofs.torture.agent_floods import peak
from proofs.torture.outcome import Outcome, Size, Torture

from benchmarks import misbehaviour
from bullpen.agents.guarded_program import GuardedProgram

FLOOD_BYTES: dict[Size, int] = {"small": 50_000_000, "full": 10_000_000_000}
FLOOD_BYTES_WITH_FAULT = 200_000_000
TURNS: dict[Size, int] = {"small": 40, "full": 1_000}
CUT_EVERY: dict[Size, int] = {"small": 97, "full": 1}
PROCESS_EVERY: dict[Size, int] = {"small": 20, "full": 97}
"""One cut in so many is also played by a process, from its start to its end."""
AT_ONCE = 8
FAULT_TURNS = 25
ESCAPES = "setsid env -i"


def run(size: Size, seed: int) -> Outcome:
    """Let agents misbehave, cut recordings, and flood."""
    cuts = list(every_cut(CUT_EVERY[size]))
    misbehaved, figures = _misbehave(range(TURNS[size]), seed)
    failures = [*misbehaved, *_cut(cuts), *_cut_processes(cuts[:: PROCESS_EVERY[size]]), *_flood(FLOOD_BYTES[size])]
    return Outcome(
        tried=TURNS[size] + len(cuts) + len(FLOODS),
        unit="turns",
        failures=tuple(failures),
        figures={
            "turns that go wrong at random, in processes": TURNS[size],
            **figures,
            "recordings cut short": len(cuts),
            "of them in processes": len(cuts[:: PROCESS_EVERY[size]]),
            "kinds of floods": len(FLOODS),
            "bytes of the longest flood": FLOOD_BYTES[size],
        },
    )


def _misbehave(numbers: Sequence[int], seed: int) -> tuple[list[str], dict[str, int]]:
    """Return what is left of turns that go wrong in every way that benchmarks/misbehaviour_plans.py knows."""
    with _own_temporary_folder() as folder:
        outcomes, left = misbehaviour.run(numbers, seed=seed, at_once=AT_ONCE)
        files = sorted(path.name for path in folder.iterdir())
    failures = [f"seed {seed}, turn {one.plan.number}: {one}" for one in outcomes if not one.is_good]
    escaping = [one for one in outcomes if ESCAPES in " ".join(one.plan.command)]
    if not left.are_none:
        failures.append(f"left behind: {left}")
    if files:
        failures.append(f"temporary files left behind: {files}")
    endings = Counter(outcome.ending for outcome in outcomes)
    figures = {f"ended as {name}": times for name, times in endings.most_common()}
    return failures, {**figures, "turns with processes that throw away all that they could be known by": len(escaping)}


@contextmanager
def _own_temporary_folder() -> Iterator[Path]:
    """Yield a folder in which all temporary files are made meanwhile."""
    with (
        tempfile.TemporaryDirectory(prefix="torture-") as folder,
        mock.patch.object(tempfile, "tempdir", folder),
        mock.patch.dict(os.environ, {"TMPDIR": folder}),
    ):
        yield Path(folder)


def _cut(cuts: Sequence[Cut]) -> list[str]:
    return [f"{cut}: {problem}" for cut in cuts for problem in wrong_with(cut)]


def _cut_processes(cuts: Sequence[Cut]) -> list[str]:
    with _own_temporary_folder() as folder:
        work = folder / "work"
        work.mkdir()
        failures = [f"{cut}: {problem}" for cut in cuts for problem in asyncio.run(played_as_a_process(cut, work))]
        files = sorted(path.name for path in folder.iterdir() if path != work)
    return [*failures, *(f"temporary file left behind: {name}" for name in files)]


def _flood(size: int) -> list[str]:
    peaks = {name: peak(name, size) for name in FLOODS}
    return [
        f"{name}: {found.highest / 1e6:.0f} MB of memory, ended as {found.ending}"
        for name, found in peaks.items()
        if found.highest > GOAL_BYTES
    ]


def run_with_fault(seed: int) -> Outcome:
    """End no processes, then keep every line whole, then believe every beginning. Each must be noticed."""
    with mock.patch.object(GuardedProgram, "end_rest", _end_nothing):
        leaks, _ = _misbehave(range(FAULT_TURNS), seed)
    memory = peak("one line", FLOOD_BYTES_WITH_FAULT, prelude=KEEP_LINES_WHOLE)
    believed = [problem for cut in every_cut(997) for problem in wrong_with(cut, believes_all=True)]
    if not (leaks and memory.highest > GOAL_BYTES and believed):
        caught = {"leaks": len(leaks), "megabytes": memory.highest // 1_000_000, "half answers": len(believed)}
        return Outcome(tried=FAULT_TURNS, unit="turns", figures=caught)
    return Outcome(tried=FAULT_TURNS, unit="turns", failures=(*leaks, f"{memory.highest:,} bytes", *believed))


KEEP_LINES_WHOLE = "from bullpen.agents.stream import LineSplitter; LineSplitter.__init__.__defaults__ = (1 << 40,)"


async def _end_nothing(*_: object) -> None:
    pass


TORTURE = Torture(
    name="hostile agents",
    does="Agents flood both streams with lines, one endless line, thoughts, answers, new messages and brackets; hang, "
    "stop within a line or a character, close their streams, ignore signals, die of them, leave children and orphans "
    "behind, and are cancelled at any moment. Every recording of a CLI is cut short.",
    promise="Every turn ends, exactly once, with a reply or a typed failure; no half answer is taken for a whole one; "
    "no process, descriptor, record, task or temporary file is left; our process stays under 150 MB.",
    run=run,
    fault="what an agent leaves behind is not ended; then lines are kept whole, however long; then every beginning of "
    "a stream is believed to be an answer.",
    seen_as="left behind",
    run_with_fault=run_with_fault,
    order=40,
)
