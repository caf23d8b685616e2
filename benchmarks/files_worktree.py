"""Figure: how long it takes to make a worktree for an agent, and to bring it up to date before its next turns."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from msgspec import Struct

from benchmarks.agents_stage import own_folder
from benchmarks.files_stage import ENVIRONMENT, change, commit, make_folder
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration
from bullpen.files.own_paths import own_path
from bullpen.files.own_workspace import OwnWorkspace
from bullpen.files.workspace import FolderSnapshots

MOST = 3.0
"""How many times what git itself takes."""
SIZES = (1_000, 5_000, 20_000)
QUICK_SIZES = (500, 2_000)
ROUNDS = 3


class Taken(Struct, frozen=True):
    """What was measured in one repository, in seconds."""

    git: float
    made: float
    again: float
    """Brought up to date, after a turn of somebody else."""

    @property
    def times(self) -> float:
        """How many times what git takes."""
        return self.made / self.git


def measure(*, quick: bool) -> Figure:
    """Make worktrees of repositories of several sizes."""
    with own_folder() as folder:
        taken = {count: _taken(folder / str(count), count) for count in (QUICK_SIZES if quick else SIZES)}
    largest = taken[max(taken)]
    return Figure(
        title="A worktree for an agent",
        goal=f"made for 20,000 files in at most {MOST:.0f} times what `git worktree add` takes",
        met=not quick and largest.times <= MOST,
        measured=f"{largest.times:.1f} times for {max(taken):,} files",
        reason="all files must reach the disk before an agent begins; other work on the machine delays that.",
        columns=("files", "git worktree add", "made by us", "times", "brought up to date"),
        rows=[
            (f"{count:,}", duration(one.git), duration(one.made), f"{one.times:.1f}", duration(one.again))
            for count, one in taken.items()
        ],
        meaning=f"Wall-clock time, the median of {ROUNDS} worktrees of one repository, with small files. Ours has also "
        "what is not committed, waits until everything is on the disk, and runs no filter or hook; it is made before "
        "an agent's first turn, and brought up to date before each one.",
        plots=(
            Plot(
                name="files-worktree",
                title="Making a worktree",
                across="files in the repository",
                up="wall-clock time, lower is better",
                unit="seconds",
                series={
                    "git worktree add": [(count, one.git) for count, one in taken.items()],
                    "bullpen": [(count, one.made) for count, one in taken.items()],
                },
            ),
        ),
    )


def _taken(folder: Path, count: int) -> Taken:
    root = folder / "root"
    make_folder(root, count)
    commit(root)
    rounds = [_round(folder, root, number, count) for number in range(ROUNDS)]
    return Taken(*(median(values) for values in zip(*rounds, strict=True)))


def _round(folder: Path, root: Path, number: int, count: int) -> tuple[float, float, float]:
    command = ["git", "worktree", "add", "-q", "--detach", str(folder / f"git-{number}")]
    by_git = _seconds(lambda: subprocess.run(command, cwd=root, env=ENVIRONMENT, check=True))
    home = folder / "home"
    snapshots = FolderSnapshots(home)
    own = OwnWorkspace(snapshots, own_path(home, f"bench-{number}", "agent"), "agent", root)
    # The folder itself is looked at before each turn anyway: files_time.py.
    before = snapshots.workspace(root).snapshot().id
    made = _seconds(lambda: own.bring_up_to_date(before, own.path))
    change(root, number, count)
    after = snapshots.workspace(root).snapshot().id
    return by_git, made, _seconds(lambda: own.bring_up_to_date(after, own.path))


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
