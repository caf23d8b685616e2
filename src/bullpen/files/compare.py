"""Two trees compared: which files changed, how, and the patch; what is in it is kept from then on."""

from msgspec import Struct

from bullpen.file_changes import FileChange, FileKind, FileState
from bullpen.files.beside import is_beside, read_beside
from bullpen.files.git import GitFailed
from bullpen.files.paths import folders_above, path_before, path_of, shown
from bullpen.files.repository import Repository

FILE_MODES = ("100644", "100755", "120000")
NO_MODE = "000000"
DIFF = ("diff-tree", "-r", "--no-ext-diff", "--no-textconv")
KINDS: dict[str, FileKind] = {"A": "added", "C": "added", "D": "deleted", "R": "renamed", "T": "mode", "M": "changed"}


class Compared(Struct, frozen=True):
    """The files that differ between two trees."""

    differing: tuple[FileChange, ...]
    """In git's order, with those beside."""
    has_renames: bool = True
    """Whether some may be told as renamed."""
    beside: tuple[bytes, ...] = ()
    """Those of them that were beside one of the trees: they were there, and are not a change."""

    @property
    def files(self) -> tuple[FileChange, ...]:
        """What has changed."""
        alone = frozenset(self.beside)
        return tuple(file for file in self.differing if path_of(file) not in alone)


def compare_folders(repository: Repository, before: str, after: str) -> Compared:
    """Return the files that differ; raises GitFailed."""
    files = compare_trees(repository, before, after)
    beside = read_beside(repository, before) | read_beside(repository, after)
    if any(is_beside(path, beside) for file in files for path in {path_of(file), path_before(file)}):
        files = compare_trees(repository, before, after, renames=False)
        alone = tuple(path for file in files if is_beside(path := path_of(file), beside))
        return Compared(files, has_renames=False, beside=alone)
    paths = {folder for file in files for folder in folders_above(path_of(file))}
    for file in files:
        # git cannot apply a patch in which a link moves away and a folder comes in its place.
        if file.kind == "renamed" and not paths.isdisjoint((path_of(file), path_before(file))):
            return Compared(compare_trees(repository, before, after, renames=False), has_renames=False)
    return Compared(files)


def compare_trees(repository: Repository, before: str, after: str, *, renames: bool = True) -> tuple[FileChange, ...]:
    """Return the files that differ; raises GitFailed."""
    detect = "--find-renames" if renames else "--no-renames"
    printed = repository.git().run(*DIFF, "-z", "--raw", "--numstat", "--no-abbrev", detect, before, after)
    words = printed.split(b"\0")[:-1]
    rows: list[tuple[str, list[bytes]]] = []
    at = 0
    while at < len(words) and words[at].startswith(b":"):
        count = 2 if words[at].rpartition(b" ")[2][:1] in (b"R", b"C") else 1
        rows.append((words[at].decode(), words[at + 1 : at + 1 + count]))
        at += 1 + count
    lines = _numbers(words[at:])
    return tuple(change for row, paths in rows if (change := _change(row, paths, lines)) is not None)


def _numbers(words: list[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    """Return lines added and removed by path; "-" of what is binary."""
    found: dict[bytes, tuple[bytes, bytes]] = {}
    at = 0
    while at < len(words):
        added, removed, path = words[at].split(b"\t", 2)
        if not path:
            at += 2
            path = words[at]
        at += 1
        found[path] = (added, removed)
    return found


def _change(row: str, paths: list[bytes], lines: dict[bytes, tuple[bytes, bytes]]) -> FileChange | None:
    old_mode, new_mode, old_blob, new_blob, letter = row[1:].split(" ")
    old = FileState(blob=old_blob, mode=old_mode) if old_mode in FILE_MODES else None
    new = FileState(blob=new_blob, mode=new_mode) if new_mode in FILE_MODES else None
    if old is None and new is None:
        return None
    kind = KINDS["A" if old is None else "D" if new is None else letter[0]]
    if kind == "changed" and old_blob == new_blob:
        kind = "mode"
    added, removed = lines.get(paths[-1], (b"0", b"0"))
    path, raw_path = shown(paths[-1])
    renamed_from, raw_renamed_from = shown(paths[0]) if kind == "renamed" else ("", b"")
    return FileChange(
        path=path,
        raw_path=raw_path,
        kind=kind,
        old=None if kind == "added" else old,
        new=new,
        renamed_from=renamed_from,
        raw_renamed_from=raw_renamed_from,
        added=0 if added == b"-" else int(added),
        removed=0 if removed == b"-" else int(removed),
        is_binary=added == b"-",
    )


def sizes_in(repository: Repository, tree: str) -> list[tuple[bytes, int, int]]:
    """Return path, mode and size of every file in a tree; raises GitFailed."""
    found = []
    for line in repository.git().run("ls-tree", "-r", "-z", "-l", tree).split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, kind, _, length = about.split()
        if kind == b"blob":
            found.append((path, int(mode, 8), int(length) if length.isdigit() else -1))
    return found


def is_tree(name: str) -> bool:
    """Return whether a name may be the id of a tree; nothing else is handed to git."""
    return len(name) in (40, 64) and all(letter in "0123456789abcdef" for letter in name)


def checked_tree(name: str) -> str:
    """Return the id of a tree; raises GitFailed if it is not one."""
    if not name:
        raise GitFailed("one of the two snapshots could not be taken")
    if not is_tree(name):
        raise GitFailed(f"{name!r} is not the id of a snapshot with contents")
    return name
