"""Where a folder is: in which git repository, or in none. Nothing of it is run or believed."""

import hashlib
import os
from pathlib import Path

from msgspec import Struct

LONGEST_POINTER = 4096
MOST_CONFIG_BYTES = 1024 * 1024


class Place(Struct, frozen=True):
    """A root, and the repository it is the work tree of, if it is one."""

    root: Path
    git_dir: Path | None = None
    """Where this work tree's own index is."""
    common_dir: Path | None = None
    """Where the objects are; several work trees may share it."""
    is_sha256: bool = False

    @property
    def family(self) -> str:
        """A name for all work trees of one repository, which does not change when a folder becomes a repository."""
        common = self.common_dir
        home = self.root if common is None else common.parent if common.name == ".git" else common
        return hashed(home) + ("-sha256" if self.is_sha256 else "")

    @property
    def name(self) -> str:
        """A name for this root."""
        return hashed(self.root)

    @property
    def objects(self) -> Path | None:
        """Where the repository keeps its objects."""
        folder = self.common_dir / "objects" if self.common_dir else None
        return folder if folder is not None and folder.is_dir() else None


def find_place(folder: Path) -> Place:
    """Return the work tree that a folder is in, else the folder itself."""
    folder = Path(os.path.realpath(folder))
    for root in (folder, *folder.parents):
        if ".git" in folder.relative_to(root).parts:
            break
        git_dir = git_dir_of(root)
        if git_dir is not None:
            return place_of(root, git_dir)
    return Place(folder)


def place_of(root: Path, git_dir: Path) -> Place:
    """Return the place of a work tree whose git folder is known."""
    common = _pointed(git_dir / "commondir", "") or git_dir
    return Place(root, git_dir, common, _is_sha256(common))


def git_dir_of(folder: Path) -> Path | None:
    """Return the git folder of a work tree; None if the folder is not the top of one."""
    git = folder / ".git"
    try:
        if git.is_dir():
            return git if (git / "HEAD").is_file() or (git / "HEAD").is_symlink() else None
        return _pointed(git, "gitdir:") if git.is_file() else None
    except OSError:
        return None


def _pointed(file: Path, prefix: str) -> Path | None:
    """Return the folder that a small file points to."""
    try:
        with file.open("rb") as opened:
            text = os.fsdecode(opened.read(LONGEST_POINTER)).rstrip("\r\n")
    except OSError:
        return None
    if not text.startswith(prefix) or "\0" in text:
        return None
    target = Path(os.path.realpath(file.parent / text[len(prefix) :].strip()))
    return target if target.is_dir() else None


def _is_sha256(common_dir: Path) -> bool:
    """Return whether ids of a repository are of SHA-256; its settings are only looked at."""
    try:
        with (common_dir / "config").open("rb") as opened:
            words = opened.read(MOST_CONFIG_BYTES).lower().split()
    except OSError:
        return False
    return b"".join(words).partition(b"objectformat=")[2].startswith((b"sha256", b'"sha256"'))


def hashed(path: Path) -> str:
    """Return a name for a folder."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:20]
