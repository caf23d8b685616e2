"""Figure: what is left after many turns that go wrong at random. It also runs alone:

python -m benchmarks.misbehaviour --turns 1000 --seed 1 --at-once 8
python -m benchmarks.misbehaviour --seed 1 --only 417
"""

import argparse
import asyncio
import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import monotonic

import msgspec
from msgspec import Struct

from benchmarks.agents_stage import own_folder, played_by, prompt
from benchmarks.misbehaviour_plans import Plan, random_plan
from benchmarks.report import Figure, duration, section
from bullpen.agents import Reply, guardian, run_turn
from bullpen.errors import AgentFailed
from bullpen.turn_events import Event, Failed, Finished

TURNS, QUICK_TURNS = 1_000, 60
SEED = 1
AT_ONCE = 8
# The longest timeout, three signals of a second each, two seconds for the rest, and a margin for a busy machine.
HANG_SECONDS = 30.0
PROC = Path("/proc")


class Outcome(Struct, frozen=True, kw_only=True):
    """How one turn went."""

    plan: Plan
    ending: str
    seconds: float
    stopping_seconds: float | None
    """From the first cancellation to the end."""
    hung: bool
    endings: int
    """Events that end the turn, if the last event is one of them."""
    error: str
    """An unexpected exception."""
    processes_left: int

    @property
    def is_good(self) -> bool:
        """Whether the turn ended exactly once and left nothing."""
        return not (self.hung or self.error or self.processes_left) and self.endings == 1


class Leftovers(Struct, frozen=True, kw_only=True):
    """What is left after all turns."""

    processes: int
    descriptors: int
    records: int
    tasks: int
    memory_bytes: int

    @property
    def are_none(self) -> bool:
        """Whether nothing is left. Memory is only reported: an allocator keeps what it has."""
        return not (self.processes or self.descriptors > 0 or self.records or self.tasks)


def measure(*, quick: bool) -> Figure:
    """Run the turns of one seed."""
    return figure(*run(range(QUICK_TURNS if quick else TURNS), seed=SEED, at_once=AT_ONCE))


def figure(outcomes: Sequence[Outcome], left: Leftovers) -> Figure:
    """Return the figure for these outcomes."""
    endings = Counter(outcome.ending for outcome in outcomes)
    stopping = [outcome.stopping_seconds for outcome in outcomes if outcome.stopping_seconds is not None]
    return Figure(
        title=f"{len(outcomes):,} turns that go wrong",
        goal="every turn ends with exactly one Finished or Failed, and nothing is left of it",
        met=left.are_none and all(outcome.is_good for outcome in outcomes),
        measured=f"{sum(outcome.is_good for outcome in outcomes):,} of {len(outcomes):,} did; "
        f"{left.processes + sum(outcome.processes_left for outcome in outcomes)} processes, {left.descriptors} file "
        f"descriptors and {left.records} records left",
        columns=("what", "how many"),
        rows=[
            *[(f"turns that ended as {name}", f"{times:,}") for name, times in endings.most_common()],
            ("turns without exactly one Finished or Failed", str(sum(outcome.endings != 1 for outcome in outcomes))),
            ("exceptions of another kind", str(sum(bool(outcome.error) for outcome in outcomes))),
            ("hangs", str(sum(outcome.hung for outcome in outcomes))),
            ("processes left", str(left.processes + sum(outcome.processes_left for outcome in outcomes))),
            ("file descriptors left", str(left.descriptors)),
            ("records of running children left", str(left.records)),
            ("tasks left", str(left.tasks)),
        ],
        meaning=f"Agents hang, flood, stop in the middle of a line or of a character, close their streams, leave "
        f"children and orphans, ignore signals, stop or die of them, and are cancelled once or several times at any "
        f"moment: `benchmarks/misbehaviour_plans.py`. The longest turn took "
        f"{duration(max(outcome.seconds for outcome in outcomes))}. From a cancellation to the end of all processes it "
        f"took {duration(median(stopping or [0]))} in the median and {duration(max(stopping, default=0))} at most. Our "
        f"process grew by {left.memory_bytes / 1e6:.1f} MB.",
    )


def run(numbers: Sequence[int], *, seed: int, at_once: int) -> tuple[list[Outcome], Leftovers]:
    """Run turns, several at once. A turn that failed the goal is printed with what repeats it."""
    with own_folder() as folder:
        return asyncio.run(_run([random_plan(seed, number) for number in numbers], folder, at_once))


async def _run(plans: Sequence[Plan], folder: Path, at_once: int) -> tuple[list[Outcome], Leftovers]:
    places = asyncio.Semaphore(at_once)

    async def in_its_place(plan: Plan) -> Outcome:
        async with places:
            # If the loop itself is blocked, nothing else can report it.
            faulthandler.dump_traceback_later(4 * HANG_SECONDS, exit=True)
            outcome = await _turn(plan, folder)
            if not outcome.is_good:
                print(msgspec.json.encode(outcome).decode()[:2000], file=sys.stderr, flush=True)
            return outcome

    await in_its_place(plans[0])
    descriptors, memory = _descriptors(), _memory()
    outcomes = await asyncio.gather(*map(in_its_place, plans))
    faulthandler.cancel_dump_traceback_later()
    await asyncio.sleep(0)
    return outcomes, Leftovers(
        processes=_end(_children()),
        descriptors=_descriptors() - descriptors,
        records=len(list((folder / "state").rglob("*.json"))),
        tasks=len(asyncio.all_tasks()) - 1,
        memory_bytes=_memory() - memory,
    )


async def _turn(plan: Plan, folder: Path) -> Outcome:
    cwd = folder / f"turn-{plan.number}"
    cwd.mkdir(exist_ok=True)
    events: list[Event] = []
    began = monotonic()
    task = asyncio.ensure_future(_answer(plan, cwd, events))
    # A task that is cancelled before it begins does nothing.
    await asyncio.sleep(0)
    cancelled_at = await _cancel(task, plan.cancelled_after)
    await asyncio.wait([task], timeout=HANG_SECONDS)
    ended = monotonic()
    hung = not task.done()
    error = "" if hung or task.cancelled() else _error(task)
    endings = [event for event in events if isinstance(event, Finished | Failed)]
    return Outcome(
        plan=plan,
        ending=_name(endings[-1]) if endings else "nothing",
        seconds=ended - began,
        stopping_seconds=None if cancelled_at is None else ended - cancelled_at,
        hung=hung,
        endings=len(endings) if events[-1:] == endings[-1:] else 0,
        error=error,
        processes_left=_end(_working_in(cwd)),
    )


async def _answer(plan: Plan, cwd: Path, events: list[Event]) -> Reply | None:
    spec = played_by(plan.cli, *plan.command)
    try:
        return await run_turn(
            spec,
            prompt(spec, "x" * plan.prompt_characters),
            emit=events.append,
            cwd=cwd,
            idle_timeout=plan.idle_timeout,
            total_timeout=plan.total_timeout,
        )
    except AgentFailed:
        return None


async def _cancel(task: "asyncio.Future[Reply | None]", moments: Sequence[float]) -> float | None:
    """Cancel as planned, and return the time of the first cancellation, if the turn was still running."""
    first: float | None = None
    for moment in moments:
        await asyncio.wait([task], timeout=moment)
        if not task.done():
            first = first or monotonic()
            task.cancel()
    return first


def _error(task: "asyncio.Future[Reply | None]") -> str:
    error = task.exception()
    return "" if error is None else repr(error)


def _name(ending: Finished | Failed) -> str:
    return ending.kind if isinstance(ending, Failed) else "finished"


def _working_in(folder: Path) -> Iterator[int]:
    """Yield the processes whose working folder this is: only those of one turn have it."""
    for entry in PROC.iterdir() if PROC.exists() else ():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink() == folder:
                    yield int(entry.name)


def _children() -> Iterator[int]:
    """Yield our children without our guardians, and the children of those. Orphans of our agents become theirs."""
    guardians = {one.pid for one in guardian.guardians}
    for process in (os.getpid(), *guardians) if PROC.exists() else ():
        with contextlib.suppress(FileNotFoundError):
            for task in (PROC / str(process) / "task").iterdir():
                yield from {*map(int, (task / "children").read_text().split())} - guardians


def _end(pids: Iterator[int]) -> int:
    """Kill processes that should be gone, and return how many there were."""
    ended = 0
    for pid in list(pids):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        ended += 1
    return ended


def _descriptors() -> int:
    """Return how many files are open, without those to guardians that wait for the next turn."""
    return len(list(Path("/dev/fd").iterdir())) - len(guardian.idle)


def _memory() -> int:
    """Return the bytes of memory in use, without what the allocator keeps for later."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    statm = PROC / "self" / "statm"
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def main() -> None:
    """Run what the command line asks for, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.misbehaviour")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--only", type=int, help="the number of a single turn")
    options = parser.parse_args()
    numbers = range(options.turns) if options.only is None else [options.only]
    found = figure(*run(numbers, seed=options.seed, at_once=options.at_once))
    print(section(found))
    raise SystemExit(not found.met)


if __name__ == "__main__":
    main()
