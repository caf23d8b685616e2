"""Figure: how long it takes to see what a turn changed in a folder."""

import resource
from pathlib import Path
from statistics import median
from time import perf_counter

from msgspec import Struct

from benchmarks.agents_stage import own_folder
from benchmarks.files_stage import change, commit, make_folder
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration
from bullpen.files.workspace import FolderSnapshots, Workspace

GOALS = {("git", 50_000): 0.6, ("no git", 5_000): 0.3}
SIZES = {"git": (1_000, 5_000, 20_000, 50_000, 100_000), "no git": (1_000, 5_000, 20_000, 50_000, 100_000)}
QUICK_SIZES = {"git": (500, 2_000), "no git": (500, 2_000)}
ROUNDS = 7


class Taken(Struct, frozen=True):
    """What was measured in one folder, in seconds."""

    first: float
    both: float
    """Before and after a turn, together."""
    compared: float
    processor: float
    """Of all three, our process and git's."""
    is_listed: bool


def measure(*, quick: bool) -> Figure:
    """Take turns in folders of several sizes, with and without git."""
    sizes = QUICK_SIZES if quick else SIZES
    with own_folder() as folder:
        taken = {
            (kind, count): _taken(folder / f"{kind}-{count}", kind, count) for kind in sizes for count in sizes[kind]
        }
    checked = {case: taken[case].both for case in GOALS if case in taken}
    return Figure(
        title="Seeing what a turn changed",
        goal="before and after a turn together, once the folder is known: at most 0.6 s for 50,000 files in git, and "
        "0.3 s for 5,000 files without git",
        met=bool(checked) and all(seconds <= GOALS[case] for case, seconds in checked.items()),
        measured=", ".join(f"{kind} {count:,}: {duration(checked[kind, count])}" for kind, count in checked),
        reason="git asks for the state of every file, before and after; other work on the machine delays that.",
        columns=("folder", "files", "first time", "before and after", "difference", "processor time of these"),
        rows=[
            (
                f"{kind}{', names and sizes only' if one.is_listed else ''}",
                f"{count:,}",
                duration(one.first),
                duration(one.both),
                duration(one.compared),
                duration(one.processor),
            )
            for (kind, count), one in taken.items()
        ],
        meaning=f"Wall-clock time, the median of {ROUNDS} turns that each edit four files and make one. Nobody waits "
        "for the second half: the reply is shown before the files are looked at again. The first time, a repository "
        "lends us what it knows; a folder without one is read whole, up to 20,000 files.",
        plots=(
            Plot(
                name="files-time",
                title="Before and after a turn, together",
                across="files in the folder",
                up="wall-clock time, lower is better",
                unit="seconds",
                series={kind: [(count, taken[kind, count].both) for count in sizes[kind]] for kind in sizes},
            ),
        ),
    )


def _taken(folder: Path, kind: str, count: int) -> Taken:
    root = folder / "root"
    make_folder(root, count)
    if kind == "git":
        commit(root)
    workspace = FolderSnapshots(folder / "home").workspace(root)
    start = perf_counter()
    first = workspace.snapshot()
    seconds = perf_counter() - start
    rounds = [_turn(workspace, number, count) for number in range(ROUNDS)]
    both, compared, processor = (median(values) for values in zip(*rounds, strict=True))
    return Taken(seconds, both, compared, processor, first.id.startswith("listing"))


def _turn(workspace: Workspace, number: int, count: int) -> tuple[float, float, float]:
    began, start = _processor(), perf_counter()
    before = workspace.snapshot()
    seconds = perf_counter() - start
    change(workspace.root, number, count)
    start = perf_counter()
    after = workspace.snapshot()
    seconds += perf_counter() - start
    start = perf_counter()
    changes = workspace.compare(before.id, after.id)
    compared = perf_counter() - start
    if not changes.files:
        raise RuntimeError(f"nothing was seen: {changes.note}")
    return seconds, compared, _processor() - began


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
