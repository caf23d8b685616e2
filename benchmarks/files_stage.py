"""A folder with many files, with or without git, and a turn that changes some of them."""

import os
import subprocess
from pathlib import Path

IN_EACH_FOLDER = 100
CHANGED = 5
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def make_folder(root: Path, count: int) -> None:
    """Write so many files, a hundred in each folder."""
    for number in range(count):
        file = _file(root, number)
        if number % IN_EACH_FOLDER == 0:
            file.parent.mkdir(parents=True)
        file.write_text(f"def function_{number}():\n    return {number}\n" * 15, encoding="utf-8")


def change(root: Path, turn: int, count: int) -> None:
    """Edit some files and make one, others in each turn."""
    for number in range(CHANGED - 1):
        with _file(root, (turn * 7919 + number * 104729) % count).open("a", encoding="utf-8") as file:
            file.write(f"# turn {turn}\n")
    (root / f"made-in-{turn}.py").write_text(f"turn = {turn}\n", encoding="utf-8")


def commit(root: Path) -> None:
    """Make it a repository, or commit what has changed; nothing goes on in the background afterwards."""
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "bench"]):
        subprocess.run(["git", "-c", "gc.auto=0", *command], cwd=root, env=ENVIRONMENT, check=True)


def disk_bytes(folder: Path) -> int:
    """Return the room that a folder takes on the disk."""
    return sum((Path(where) / name).lstat().st_blocks * 512 for where, _, names in os.walk(folder) for name in names)


def _file(root: Path, number: int) -> Path:
    return root / f"folder-{number // IN_EACH_FOLDER}" / f"file-{number}.py"
