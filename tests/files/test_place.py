"""A folder is in the repository that git finds there, and in none where git finds none."""

import os
import subprocess
from pathlib import Path
from shutil import copytree

import pytest
from tests.files.stage import repository

from bullpen.files.place import find_place

WORKTREE = "git worktree add -q ../tree; mv .git ../moved; echo gitdir: ../moved/worktrees/tree > .git"
HARM = {
    "nothing": ":",
    "an empty folder": "rm -rf .git; mkdir .git",
    "no HEAD": "rm .git/HEAD",
    "a HEAD that says nothing": "echo nonsense > .git/HEAD",
    "a HEAD that names no branch": "echo 'ref: elsewhere' > .git/HEAD",
    "a HEAD that is a commit": "git rev-parse HEAD > .git/HEAD.new; mv .git/HEAD.new .git/HEAD",
    "a HEAD that is a link": "ln -sf refs/heads/main .git/HEAD",
    "a HEAD that is a link to elsewhere": "mv .git/HEAD .git/x; ln -s x .git/HEAD",
    "no objects": "rm -rf .git/objects",
    "no refs": "rm -rf .git/refs",
    "a link": "mv .git ../moved; ln -s ../moved .git",
    "a file": "mv .git ../moved; echo gitdir: ../moved > .git",
    "a file that names nothing": "rm -rf .git; echo gitdir: ../nowhere > .git",
    "a file that names a folder": "rm -rf .git; echo gitdir: .. > .git",
    "a file that says nothing": "rm -rf .git; echo nonsense > .git",
    "a worktree": WORKTREE,
    "a worktree of a repository without a HEAD": f"{WORKTREE}; rm ../moved/HEAD",
    "a worktree of a repository without objects": f"{WORKTREE}; rm -rf ../moved/objects",
}


@pytest.mark.parametrize("outer", ["repository", "empty"])
def test_a_folder_is_where_git_finds_it(tmp_path: Path, outer: str) -> None:
    """Below a repository, and below a folder that git does not take for one."""
    above = tmp_path / outer
    if outer == "repository":
        repository(above)
    else:
        (above / ".git").mkdir(parents=True)
    original = repository(tmp_path / "original", {"below/file": b"x"})
    found, expected = {}, {}
    for number, (harm, script) in enumerate(HARM.items()):
        root = copytree(original, above / str(number) / "root")
        subprocess.run(["sh", "-ec", script], cwd=root, check=True)
        expected[harm] = root_by_git(root / "below", above)
        found[harm] = find_place(root / "below").root
    assert found == expected


def root_by_git(folder: Path, above: Path) -> Path:
    """Return the work tree in which git is in a folder; the folder if it is in none."""
    ceiling = {**os.environ, "GIT_CEILING_DIRECTORIES": str(above.parent)}
    command = ["git", "-C", str(folder), "rev-parse", "--show-toplevel"]
    said = subprocess.run(command, env=ceiling, capture_output=True, text=True, check=False)
    return Path(said.stdout.rstrip("\n")) if said.returncode == 0 else folder
