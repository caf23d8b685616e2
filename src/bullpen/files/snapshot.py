"""A snapshot: all files of a workspace at one moment, as a tree in our repository."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from bullpen.file_changes import FileState
from bullpen.files.beside import write_beside
from bullpen.files.git import Git, GitFailed
from bullpen.files.paths import shown
from bullpen.files.repository import Repository
from bullpen.files.seed import seed, tracked_but_ignored
from bullpen.text.numbers import counted, size

MOST_NEW_FILES = 20_000
MOST_NEW_BYTES = 500_000_000
"""What is kept at once of files that are in no repository; if there is more, only names and sizes are."""
MOST_FILE_BYTES = 100_000_000
MOST_COPIED = 500
MOST_NESTED = 1000
FEW = 3
PLACEHOLDER = b".bullpen-placeholder"
GONE = b"D"
CLOSED = "Some folders cannot be opened, so changes there are not known."
EXCLUDE_FROM = "--exclude-from="
CHECK_IGNORE = ("--no-literal-pathspecs", "check-ignore", "--quiet", "--no-index", "--")


class LeftOut(Struct, frozen=True):
    """A file that is not in a snapshot."""

    path: bytes
    is_large: bool
    """Else it cannot be read."""
    bytes: int
    time: int


class Snapshot(Struct, frozen=True, kw_only=True):
    """All files at one moment."""

    id: str
    """What compare() and merge() take; empty: nothing is known."""
    note: str = ""
    """What is not in it, and why, in sentences."""
    is_away: bool = False
    """Whether nothing is known because the machine that has the files is away."""
    left_out: tuple[LeftOut, ...] = ()

    def note_since(self, before: Collection[LeftOut]) -> str:
        """Return the note, but for files that were left out before and have not changed since, by size and time."""
        rest = self.note.removesuffix(_note(self.left_out)).rstrip()
        return " ".join(filter(None, [rest, _note([one for one in self.left_out if one not in before])]))


class TooMuch(Exception):
    """More than we keep the contents of."""


def take_snapshot(repository: Repository) -> Snapshot:
    """Keep all files as they are now; raises GitFailed, TooMuch or OSError."""
    with repository.locked():
        repository.prepare()
        try:
            return _taken(repository)
        except GitFailed as error:
            if "index" not in str(error):
                raise
            # Ours is damaged. Everything that it knows can be found out again.
            repository.forget_index()
            return _taken(repository)


def fill_folder(repository: Repository, tree: str) -> None:
    """Write all files of a tree where nothing is yet; raises GitFailed or OSError."""
    with repository.locked():
        repository.prepare()
        repository.forget_index()
        git = repository.git()
        git.run("read-tree", tree)
        # With as many processes as there are processors: most of the time it waits for the disk.
        git.run("-c", "checkout.workers=0", "checkout-index", "--all", "--index", "--force", "--quiet")
        # None of it may be missing after a power cut, when it is said that it is there.
        os.sync()
        repository.remember_tree(tree)


def tree_with(repository: Repository, tree: str, states: Mapping[bytes, FileState | None]) -> str:
    """Return a tree in which some files are in other states, or not there; raises GitFailed or OSError."""
    # Seldom needed, and slow to import.
    from tempfile import TemporaryDirectory

    nothing = "0" * len(tree)
    lines = [
        f"{state.mode} {state.blob}\t".encode() + path if state else f"0 {nothing}\t".encode() + path
        # What is taken away first may be in the place of a folder.
        for path, state in sorted(states.items(), key=lambda item: item[1] is not None)
    ]
    with TemporaryDirectory(prefix="bullpen-tree-") as folder:
        git = repository.git(index=Path(folder) / "index")
        git.run("read-tree", tree)
        git.run("update-index", "--replace", "-z", "--index-info", given=b"".join(line + b"\0" for line in lines))
        return git.run("write-tree", "--missing-ok").decode().strip()


def is_ignored(repository: Repository, folder: Path) -> bool:
    """Return whether a folder below the root is left alone; raises OSError."""
    repository.prepare()
    files = [option.removeprefix(EXCLUDE_FROM) for option in repository.excludes() if option.startswith(EXCLUDE_FROM)]
    for settings in ((), *(("-c", f"core.excludesFile={file}") for file in files)):
        try:
            repository.git().run(*settings, *CHECK_IGNORE, f"{folder}/")
            return True
        except GitFailed:
            # So it says no, too.
            continue
    return False


def _taken(repository: Repository) -> Snapshot:
    tree = repository.last_tree()
    unread = [] if repository.is_seeded else seed(repository)
    unread += tracked_but_ignored(repository)
    new, stale, closed = _look(repository)
    large = _too_large(repository, new, stale, unread)
    paths = [path for path in dict.fromkeys((*unread, *new)) if path not in large]
    stale = {path: letter for path, letter in stale.items() if path not in large}
    unreadable = _update(repository, paths, stale) if paths or stale else []
    if paths or stale or not tree:
        # An object that is missing was taken away in somebody's repository; all other files are still known.
        with repository.keeping_time():
            tree = repository.git().run("write-tree", "--missing-ok").decode().strip()
        repository.remember_tree(tree)
    left_out = tuple(_left_out(repository, path, is_large=path in large) for path in (*large, *unreadable))
    write_beside(repository, tree, (*large, *unreadable, *closed))
    note = CLOSED if closed else ""
    return Snapshot(id=tree, note=" ".join(filter(None, [note, _note(left_out)])), left_out=left_out)


def _left_out(repository: Repository, path: bytes, *, is_large: bool) -> LeftOut:
    try:
        status = os.lstat(os.fsencode(repository.place.root) + b"/" + path)
    except OSError:
        return LeftOut(path, is_large, 0, 0)
    return LeftOut(path, is_large, status.st_size, status.st_mtime_ns)


def _look(repository: Repository) -> tuple[list[bytes], dict[bytes, bytes], list[bytes]]:
    """Return the files that are not in our index, those that may differ with git's letter, and closed folders."""
    git = repository.git()
    # The two run beside each other.
    with git.started("diff-files", "--raw", "-z", "--ignore-submodules=all") as differing:
        new = _others(repository, git)
        parts = differing.read().split(b"\0")
    stale = {path: words[-1:] for words, path in zip(parts[:-1:2], parts[1::2], strict=True)}
    nested = [path for path in new if path.endswith(b"/")]
    if nested:
        new = [path for path in new if not path.endswith(b"/")]
        inside, placeholders = _nested(repository, nested)
        new += inside
        stale |= dict.fromkeys(placeholders, GONE)
    return new, stale, [folder + b"/" for folder in git.cannot_open]


def _nested(repository: Repository, nested: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the files in repositories within ours, and what our index must lose again.

    Such a repository is listed as one name, unless our index has a file in it.
    """
    found: list[bytes] = []
    placeholders: list[bytes] = []
    while nested and len(placeholders) < MOST_NESTED:
        _hold_places(repository, nested)
        placeholders += [folder + PLACEHOLDER for folder in nested]
        listed = _others(repository, repository.git(), *map(os.fsdecode, nested))
        found += [path for path in listed if not path.endswith(b"/")]
        nested = [path for path in listed if path.endswith(b"/") and path + PLACEHOLDER not in placeholders]
    return found, placeholders


def _others(repository: Repository, git: Git, *within: str) -> list[bytes]:
    options = ("ls-files", "--others", "-z", "--exclude-standard", *repository.excludes())
    return git.run(*options, "--", *within).split(b"\0")[:-1]


def _hold_places(repository: Repository, nested: Iterable[bytes]) -> None:
    git = repository.git()
    empty = git.run("hash-object", "-w", "--stdin").strip()
    lines = [b"100644 %b\t%b%b\0" % (empty, folder, PLACEHOLDER) for folder in nested]
    with repository.keeping_time():
        git.run("update-index", "-z", "--index-info", given=b"".join(lines))
    for folder in nested:
        repository.borrow(repository.place.root / os.fsdecode(folder))


def _too_large(
    repository: Repository, new: Sequence[bytes], stale: Iterable[bytes], unread: Sequence[bytes]
) -> dict[bytes, int]:
    """Return the files that are too large; raises TooMuch if those in no repository are too much together."""
    root, tracked = os.fsencode(repository.place.root), set(unread)
    untracked = [path for path in new if path not in tracked]
    if len(untracked) > MOST_NEW_FILES:
        raise TooMuch(f"it has {counted(len(untracked), 'file')} that are in no repository")
    sizes = {path: _size(root + b"/" + path) for path in (*untracked, *stale, *unread)}
    large = {path: length for path, length in sizes.items() if length > MOST_FILE_BYTES}
    total = sum(sizes[path] for path in untracked if path not in large)
    if total > MOST_NEW_BYTES:
        raise TooMuch(f"it has {size(total)} in files that are in no repository")
    return large


def _size(path: bytes) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _update(repository: Repository, new: Sequence[bytes], stale: dict[bytes, bytes]) -> list[bytes]:
    """Bring our index up to date, and return what could not be read."""
    # A few are kept whole in ours, in case other repositories lose them; many share what is there.
    git = repository.git(alone=len(new) + len(stale) <= MOST_COPIED)
    root = os.fsencode(repository.place.root)
    gone = {path for path, letter in stale.items() if letter == GONE or not _is_file(root + b"/" + path)}
    if gone:
        nothing = b"0" * (64 if repository.place.is_sha256 else 40)
        lines = [b"0 %b\t%b\0" % (nothing, path) for path in gone]
        with repository.keeping_time():
            git.run("update-index", "-z", "--index-info", given=b"".join(lines))
    paths = [*new, *(path for path in stale if path not in gone)]
    unreadable: list[bytes] = []
    for tries_left in (2, 1, 0):
        try:
            _add(git, paths)
            break
        except GitFailed:
            if not tries_left:
                raise
            # It stops at the first file that it cannot read, or that changes while it is read.
            bad = {path for path in paths if not _is_readable(root + b"/" + path)}
            unreadable += sorted(bad)
            paths = [path for path in paths if path not in bad]
    return unreadable


def _add(git: Git, paths: Sequence[bytes]) -> None:
    given = b"".join(path + b"\0" for path in paths)
    # What git takes for large goes straight into one pack; a file for each of many contents would take minutes.
    large = "1" if len(paths) > MOST_COPIED else "512m"
    git.run(
        "-c",
        f"core.bigFileThreshold={large}",
        "update-index",
        "-z",
        "--add",
        "--remove",
        "--replace",
        "--stdin",
        given=given,
    )


def _is_file(path: bytes) -> bool:
    """Return whether a path leads to what is kept: not to a folder, a socket or a device that has taken its place."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _is_readable(path: bytes) -> bool:
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            os.close(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return _is_file(path)


def _note(left_out: Sequence[LeftOut]) -> str:
    large = [one.path for one in left_out if one.is_large]
    unreadable = [one.path for one in left_out if not one.is_large]
    is_large = f"{'is' if len(large) == 1 else 'are'} too large to be kept"
    return " ".join(filter(None, [_sentence(large, is_large), _sentence(unreadable, "cannot be read")]))


def _sentence(paths: Sequence[bytes], why: str) -> str:
    if not paths:
        return ""
    names = ", ".join(shown(path)[0] for path in paths[:FEW])
    more = f" and {len(paths) - FEW:,} more" if len(paths) > FEW else ""
    return f"{names}{more} {why}, so changes there are not known."
