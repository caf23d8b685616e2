"""A three-way merge of snapshots, file by file."""

from pathlib import Path

from msgspec import Struct

from bullpen.file_changes import FileChange, FileKind, FileState
from bullpen.files.compare import compare_trees
from bullpen.files.git import Git, GitFailed
from bullpen.files.keep import keep_objects
from bullpen.files.paths import folders_above, path_of, shown
from bullpen.files.repository import Repository

LINK, EXECUTABLE, PLAIN = "120000", "100755", "100644"
MOST_MERGED_BYTES = 16_000_000
BINARY_BYTES = 8000
"""As git does: with a zero byte near its beginning, a file is not a text."""
States = dict[bytes, FileState | None]


class Conflict(Struct, frozen=True, kw_only=True):
    """A file that both sides have changed in ways that cannot both be kept."""

    path: str
    raw_path: bytes = b""
    """The path itself, if it is not UTF-8."""
    base: FileState | None = None
    ours: FileState | None = None
    theirs: FileState | None = None
    marked: FileState | None = None
    """For texts: both versions in one, with <<<<<<< around what differs."""

    def settled(self, state: FileState | None) -> FileChange:
        """Return what must change in ours so that the file is in a state."""
        return _change(self.raw_path or self.path.encode(), self.ours, state)


class Merged(Struct, frozen=True, kw_only=True):
    """What a merge gives."""

    changes: tuple[FileChange, ...] = ()
    """To be applied to ours."""
    conflicts: tuple[Conflict, ...] = ()
    """What somebody must decide; none of it is in changes."""


def merge_trees(repository: Repository, base: str, ours: str, theirs: str) -> Merged:
    """Return what ours lacks of theirs; raises GitFailed."""
    in_base, in_theirs = _sides(repository, base, theirs)
    _, in_ours = _sides(repository, base, ours)
    git, ours_alone = repository.git(), repository.git(alone=True)
    changes: list[FileChange] = []
    conflicts: list[Conflict] = []
    for path in sorted(in_theirs):
        old, new = in_base[path], in_theirs[path]
        mine = in_ours.get(path, old)
        found: FileState | Conflict | None = new
        if path in in_ours and mine != new:
            found = _merged(git, ours_alone, path, old, mine, new)
        if isinstance(found, Conflict):
            conflicts.append(found)
        elif found != mine:
            changes.append(_change(path, mine, found))
    result = _without_collisions(changes, conflicts, in_base, in_ours)
    states = [state for change in result.changes for state in (change.old, change.new)]
    states += [state for one in result.conflicts for state in (one.base, one.ours, one.theirs)]
    keep_objects(repository, {state.blob for state in states if state is not None})
    return result


def _sides(repository: Repository, before: str, after: str) -> tuple[States, States]:
    """Return the states of the files that differ, on both sides."""
    changes = compare_trees(repository, before, after, renames=False)
    return {path_of(change): change.old for change in changes}, {path_of(change): change.new for change in changes}


def _merged(
    git: Git, ours_alone: Git, path: bytes, base: FileState | None, ours: FileState | None, theirs: FileState | None
) -> FileState | Conflict | None:
    """Return a file that both sides have changed, with what both have done, or the conflict."""
    name, raw = shown(path)
    conflict = Conflict(path=name, raw_path=raw, base=base, ours=ours, theirs=theirs)
    if ours is None or theirs is None or LINK in (ours.mode, theirs.mode) or (base is not None and base.mode == LINK):
        return conflict
    mode = theirs.mode if base is not None and ours.mode == base.mode else ours.mode
    if ours.blob == theirs.blob or (base is not None and theirs.blob == base.blob):
        return FileState(blob=ours.blob, mode=mode)
    if base is not None and ours.blob == base.blob:
        return FileState(blob=theirs.blob, mode=mode)
    texts = [b"" if state is None else git.run("cat-file", "blob", state.blob) for state in (ours, base, theirs)]
    if any(len(text) > MOST_MERGED_BYTES or b"\0" in text[:BINARY_BYTES] for text in texts):
        return conflict
    text, is_clean = _merge_texts(git, texts)
    blob = ours_alone.run("hash-object", "-w", "--stdin", given=text).decode().strip()
    state = FileState(blob=blob, mode=mode)
    # What both have added is not the same file, even if no line is in both.
    if is_clean and base is not None:
        return state
    return Conflict(path=name, raw_path=raw, base=base, ours=ours, theirs=theirs, marked=state)


def _merge_texts(git: Git, texts: list[bytes]) -> tuple[bytes, bool]:
    # Seldom needed, and slow to import.
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="bullpen-merge-") as folder:
        files = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for file, text in zip(files, texts, strict=True):
            file.write_bytes(text)
        labels = [word for name in ("ours", "base", "theirs") for word in ("-L", name)]
        try:
            git.run("merge-file", "-q", *labels, *map(str, files))
            is_clean = True
        except GitFailed:
            # Its exit code is the number of conflicts.
            is_clean = False
        return files[0].read_bytes(), is_clean


def _change(path: bytes, old: FileState | None, new: FileState | None) -> FileChange:
    kind: FileKind = "added" if old is None else "deleted" if new is None else "changed"
    if old is not None and new is not None and old.blob == new.blob:
        kind = "mode"
    name, raw = shown(path)
    return FileChange(path=name, raw_path=raw, kind=kind, old=old, new=new)


def _without_collisions(
    changes: list[FileChange], conflicts: list[Conflict], in_base: States, in_ours: States
) -> Merged:
    """Take out what would be a file where ours has a folder, or the other way round."""
    made = {path for path, state in in_ours.items() if state is not None}
    folders = {folder for path in made for folder in folders_above(path)}
    kept = []
    for change in changes:
        path = path_of(change)
        if (
            change.new is not None
            and change.old is None
            and (path in folders or not made.isdisjoint(folders_above(path)))
        ):
            conflicts.append(
                Conflict(
                    path=change.path,
                    raw_path=change.raw_path,
                    base=in_base.get(path),
                    ours=in_ours.get(path),
                    theirs=change.new,
                )
            )
        else:
            kept.append(change)
    return Merged(changes=tuple(kept), conflicts=tuple(conflicts))
