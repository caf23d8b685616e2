"""A folder with a few files, its workspace, and what git says of it."""

import os
from pathlib import Path

from tests.files.random_turns import git

from bullpen.file_changes import FolderChanges
from bullpen.files.workspace import FolderSnapshots, Workspace

FILES = {
    "kept.txt": b"one\ntwo\nthree\n",
    "edited.txt": b"a\nb\nc\n",
    "folder/deep.txt": b"deep\n",
    "gone.txt": b"bye\n",
}


def write(root: Path, files: dict[str, bytes]) -> None:
    """Write files into a folder."""
    for name, data in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def repository(root: Path, files: dict[str, bytes] | None = None) -> Path:
    """Make a repository with one commit."""
    root.mkdir(parents=True)
    git(root, "init", "-q")
    write(root, FILES if files is None else files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


def workspace(root: Path) -> Workspace:
    """Return the workspace of a folder; what is kept of it is beside it."""
    return FolderSnapshots(root.parent / "home").workspace(root)


def turn(place: Workspace, files: dict[str, bytes | None]) -> FolderChanges:
    """Change files, None for one that is removed, and return what was seen of that."""
    before = place.snapshot()
    for name, data in files.items():
        if data is None:
            (place.root / name).unlink()
        else:
            write(place.root, {name: data})
    return place.compare(before.id, place.snapshot().id)


def told(changes: FolderChanges) -> dict[str, str]:
    """Return the kind of change by path."""
    return {file.path: file.kind for file in changes.files}


def kept_bytes(folder: Path) -> int:
    """Return how many bytes all files of a folder have."""
    return sum(os.lstat(Path(where) / name).st_size for where, _, names in os.walk(folder) for name in names)
