"""Worktrees of somebody's repository: made, brought to the same commit and index as the shared folder, and removed.

Nothing of the repository is run: no hook, no filter. Its files are written by a workspace, byte for byte.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bullpen.files.git import Git, GitFailed, find_git
from bullpen.files.place import Place, find_place, flaw_of, git_dir_of

REASON = "an agent of bullpen works here"
NOT_THERE = b"S "
"""Before a file that is not in the folder, since that is a sparse checkout."""
NO_GIT = "git is not installed. Install it"
NO_REPOSITORY = "{} is not in a git repository. Make it one with `git init`, and commit something"
NO_COMMIT = "the repository {} has no commit yet. Commit something first"
DAMAGED = "the repository {} is damaged: {}. Repair it first; `git fsck` may say more"


def why_no_worktree(folder: Path) -> str:
    """Return why there can be no worktree beside a folder, and what to do about it; nothing if there can."""
    if find_git() is None:
        return NO_GIT
    place = find_place(folder)
    if place.git_dir is None:
        broken = next((root / ".git" for root in (place.root, *place.root.parents) if _is_broken(root)), None)
        if broken is None:
            return NO_REPOSITORY.format(folder)
        what = flaw_of(broken) if broken.is_dir() else "names no git folder"
        return DAMAGED.format(broken.parent, f"{broken} {what}")
    try:
        head_of(place)
    except GitFailed:
        return _why_no_head(place)
    return ""


def _is_broken(root: Path) -> bool:
    """Return whether a folder was the top of a repository, and git cannot use it any more."""
    git = root / ".git"
    try:
        return git_dir_of(root) is None and (
            git.is_file() or any((git / name).exists() for name in ("HEAD", "objects"))
        )
    except OSError:
        return False


def _why_no_head(place: Place) -> str:
    """Return why a repository has no commit that a worktree could be at: there is none yet, or it is damaged."""
    git = _git(place)
    try:
        named = git.run("rev-parse", "--verify", "-q", "HEAD").decode().strip()
    except GitFailed:
        named = ""
    if named:
        return DAMAGED.format(place.root, f"its last commit {named} cannot be read")
    try:
        # A branch without a commit has a name, which git does not say if something is wrong.
        git.run("symbolic-ref", "HEAD")
    except GitFailed as error:
        return DAMAGED.format(place.root, error)
    return NO_COMMIT.format(place.root)


def head_of(place: Place) -> str:
    """Return the commit that a worktree is at; raises GitFailed."""
    return _git(place).run("rev-parse", "--verify", "-q", "HEAD^{commit}").decode().strip()


def make_worktree(place: Place, path: Path) -> str:
    """Make an empty worktree at the commit of another, locked, and return that commit; raises GitFailed or OSError.

    What an earlier try has left is removed first.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    options = ("--detach", "--no-checkout", "--lock", "--reason", REASON)
    git = _git(place)
    with _alone(place) as git.inherited:
        _remove(place, path)
        head = head_of(place)
        git.run("worktree", "add", *options, "--", str(path), head)
    return head


def is_worktree(place: Place, path: Path) -> bool:
    """Return whether a path is a worktree of the same repository, and both know of it."""
    git_dir = git_dir_of(path)
    return git_dir is not None and find_place(path).common_dir == place.common_dir and git_dir in _known(place, path)


def remove_worktree(place: Place, path: Path) -> None:
    """Remove a worktree with all files in it, also one that is half made or half removed. Raises OSError."""
    with _alone(place):
        _remove(place, path)


def _remove(place: Place, path: Path) -> None:
    if os.path.lexists(path):
        shutil.rmtree(path)
    # Last, since it is what tells that there was one.
    for folder in _known(place, path):
        shutil.rmtree(folder)


def follow_head(place: Place, path: Path, ours: str) -> str:
    """Bring the commit and the index of a worktree to those of the shared one, and return the commit.

    If it is not at `ours`, the commit that it was brought to last, the agent has made commits: they stay.
    """
    own = find_place(path)
    if own.git_dir is None or _head_file(own.git_dir) != ours:
        return ours
    head = head_of(place)
    if head != ours:
        _git(own).run("update-ref", "--no-deref", "HEAD", head)
    wanted = _entries(place)
    if wanted != _entries(own):
        git = _git(own)
        git.run("read-tree", "--empty")
        git.run("update-index", "-z", "--index-info", given=b"".join(entry[2:] + b"\0" for entry in wanted))
        if sparse := [entry.partition(b"\t")[2] + b"\0" for entry in wanted if entry.startswith(NOT_THERE)]:
            git.run("update-index", "-z", "--skip-worktree", "--stdin", given=b"".join(sparse))
    return head


def has_own_commits(path: Path, ours: str) -> bool:
    """Return whether an agent has made commits in its worktree, or is on a branch there."""
    git_dir = git_dir_of(path)
    return git_dir is not None and bool(ours) and _head_file(git_dir) not in ("", ours)


def _entries(place: Place) -> list[bytes]:
    """Return what an index knows, each after a letter and a space; without the versions of an unfinished merge."""
    # In the root: only what is below the folder where git runs is listed.
    printed = _git(place).run("-C", str(place.root), "ls-files", "-t", "--stage", "-z").split(b"\0")[:-1]
    return [line for line in printed if line.partition(b"\t")[0].endswith(b" 0")]


def _head_file(git_dir: Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (git_dir / "HEAD").read_text(encoding="utf-8").strip()
    return ""


def _known(place: Place, path: Path) -> list[Path]:
    """Return the folders in which a repository keeps what it knows of a worktree; also of one that is half made."""
    return list(_known_to(place.common_dir, path)) if place.common_dir is not None else []


def _known_to(common: Path, path: Path) -> Iterator[Path]:
    try:
        folders = sorted((common / "worktrees").iterdir())
    except OSError:
        return
    for folder in folders:
        try:
            pointer = os.fsdecode((folder / "gitdir").read_bytes()).rstrip("\n")
        except OSError:
            pointer = ""
        # git writes where it is only after it has made the folder; but our names are like nobody else's.
        is_half_made = not pointer and folder.name.startswith(path.name)
        if is_half_made or (pointer and Path(pointer) == path / ".git"):
            yield folder


@contextlib.contextmanager
def _alone(place: Place) -> Iterator[tuple[int, ...]]:
    """Let nobody else make or remove worktrees meanwhile: git fails if it comes upon one that is half made.

    Yield what git must inherit, so that it keeps the lock until it ends, even if we are killed.
    """
    if place.common_dir is None:
        yield ()
        return
    folder = os.open(place.common_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Where it cannot be locked, as on some network drives, there is no other way.
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield (folder,)
    finally:
        os.close(folder)


def _git(place: Place) -> Git:
    """Return git for a worktree itself, with its own index."""
    if place.git_dir is None:
        raise GitFailed(NO_REPOSITORY.format(place.root))
    return Git(find_git() or "git", place.git_dir, root=place.root)
