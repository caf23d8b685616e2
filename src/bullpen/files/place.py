"""Where a folder is: in which git repository, or in none. Nothing of it is run or believed."""

import hashlib
import os
import re
from pathlib import Path

from msgspec import Struct

LONGEST_POINTER = 4096
MOST_CONFIG_BYTES = 1024 * 1024
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-fA-F]{40}")


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
    """Return the work tree that a folder is in, else the folder itself. As git does, look no further than a file."""
    folder = Path(os.path.realpath(folder))
    for root in (folder, *folder.parents):
        if ".git" in folder.relative_to(root).parts:
            break
        git_dir = git_dir_of(root)
        if git_dir is not None:
            return place_of(root, git_dir)
        if os.path.isfile(root / ".git"):  # noqa: PTH113 - also where we may not look
            break
    return Place(folder)


def place_of(root: Path, git_dir: Path) -> Place:
    """Return the place of a work tree whose git folder is known."""
    common = _common(git_dir)
    return Place(root, git_dir, common, _is_sha256(common))


def _common(git_dir: Path) -> Path:
    return _pointed(git_dir / "commondir", "") or git_dir


def git_dir_of(folder: Path) -> Path | None:
    """Return the git folder of a work tree; None if the folder is not the top of one."""
    git = folder / ".git"
    try:
        found = _pointed(git, "gitdir:") if git.is_file() else git
        return None if found is None or flaw_of(found) else found
    except OSError:
        return None


def flaw_of(git_dir: Path) -> str:
    """Return why git does not take a folder for a git folder; nothing if it does."""
    if not _is_head(git_dir / "HEAD"):
        return "has no valid HEAD"
    missing = (name for name in ("objects", "refs") if not (_common(git_dir) / name).is_dir())
    return next((f"has no folder {name}" for name in missing), "")


def _is_head(file: Path) -> bool:
    """Return whether a file names a branch or a commit."""
    try:
        if file.is_symlink():
            return str(file.readlink()).startswith("refs/")
        return file.is_file() and _HEAD.match(_beginning(file)) is not None
    except OSError:
        return False


def _pointed(file: Path, prefix: str) -> Path | None:
    """Return the folder that a small file points to."""
    try:
        text = os.fsdecode(_beginning(file)).rstrip("\r\n")
    except OSError:
        return None
    if not text.startswith(prefix) or "\0" in text:
        return None
    target = Path(os.path.realpath(file.parent / text[len(prefix) :].strip()))
    return target if target.is_dir() else None


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(LONGEST_POINTER)


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
