"""Figure: the disk space that it takes to see and undo what turns changed."""

from pathlib import Path

from benchmarks.agents_stage import own_folder
from benchmarks.files_stage import change, commit, disk_bytes, make_folder
from benchmarks.report import Figure, times
from bullpen.files.workspace import FolderSnapshots

GOAL = 1.2
FILES, QUICK_FILES = 5_000, 500
TURNS = 20
KINDS = ("git", "no git")


def measure(*, quick: bool) -> Figure:
    """Let turns change the same files with us and with a commit for each turn, and compare what lies on the disk."""
    count = QUICK_FILES if quick else FILES
    with own_folder() as folder:
        of_git = _committed(folder / "committed", count)
        ours = {kind: _kept(folder / kind, kind, count) for kind in KINDS}
    ratios = {kind: stored / of_git for kind, stored in ours.items()}
    return Figure(
        title="Room for what turns changed",
        goal=f"at most {GOAL:g} times what git itself would store",
        met=max(ratios.values()) <= GOAL,
        measured=", ".join(f"{kind} {times(ratio)}" for kind, ratio in ratios.items()),
        reason="what a turn replaced is copied out of the repository, so that it is not lost when that is tidied.",
        columns=("folder", "git, a commit for each turn", "with what we keep", "ratio"),
        rows=[(kind, f"{of_git:,} B", f"{ours[kind]:,} B", times(ratios[kind])) for kind in KINDS],
        meaning=f"Blocks on the disk for {count:,} files and {TURNS} turns that each edit four files and make one. In "
        "a repository, its own git folder counts as well as ours.",
    )


def _committed(root: Path, count: int) -> int:
    make_folder(root, count)
    commit(root)
    for turn in range(TURNS):
        change(root, turn, count)
        commit(root)
    return disk_bytes(root / ".git")


def _kept(folder: Path, kind: str, count: int) -> int:
    root = folder / "root"
    make_folder(root, count)
    if kind == "git":
        commit(root)
    workspace = FolderSnapshots(folder / "home").workspace(root)
    for turn in range(TURNS):
        before = workspace.snapshot()
        change(root, turn, count)
        workspace.compare(before.id, workspace.snapshot().id)
    return disk_bytes(folder / "home") + disk_bytes(root / ".git")
