"""Changes: what turns, people and undos changed in folders, in words and in lists, for every door."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.file_changes import ChangeRecord, FileChange, FileKind, FileState, FolderChanges
from bullpen.text.numbers import counted
from bullpen.view.combined_changes import CombinedChanges, combine, counted_once, key_of
from bullpen.view.diff import file_words, plus_minus

SOMEBODY = "Somebody"
"""Who changed files between two turns: nothing tells us the name."""
FEW = 5
"""Names of files in a sentence."""
UNKNOWN = "what changed is not known"
ALSO_BY_OTHERS = "Files that others have changed, too, are shown change by change."


class ChangedFile(Struct, frozen=True, kw_only=True):
    """One file, and all that happened to it in some records."""

    folder: str
    path: str
    renamed_from: str = ""
    kind: FileKind
    added: int = 0
    removed: int = 0
    is_binary: bool = False
    parts: tuple[str, ...] = ()
    """The keys of the changes in which it is, oldest first."""

    @property
    def title(self) -> str:
        """Its path, and the one it had before."""
        return f"{self.renamed_from} → {self.path}" if self.renamed_from else self.path

    @property
    def about(self) -> str:
        """What became of it, in a few words."""
        return file_words(self.kind, self.added, self.removed, is_binary=self.is_binary)


class ChangeGroup(Struct, frozen=True, kw_only=True):
    """Changes that are listed under one heading: of a turn, of a member, or all of them."""

    key: str
    """The number of a record, the name of a member, or "all"."""
    title: str
    summary: str
    files: tuple[ChangedFile, ...]
    parts: tuple[str, ...]
    """The keys of its changes."""
    notes: tuple[str, ...] = ()
    """What is not known, in sentences."""

    @property
    def is_known(self) -> bool:
        """Whether its files are all that was changed, even if there are none."""
        return self.summary != UNKNOWN


class Changes(Struct, frozen=True, kw_only=True):
    """What was changed in a conversation."""

    turns: tuple[ChangeGroup, ...] = ()
    """One for each record, oldest first: also what people changed and what was taken back."""
    members: tuple[ChangeGroup, ...] = ()
    together: ChangeGroup
    combined: tuple[ChangeRecord, ...] = ()
    """What is in `together`: of each folder all changes as one, or each of them."""


def files_words(files: Sequence[FileChange | ChangedFile]) -> str:
    """Return how much was changed: "3 files, +24 −7"."""
    return _words(files, len(files), sum(file.added for file in files), sum(file.removed for file in files))


def _words(files: Sequence[FileChange | ChangedFile], count: int, added: int, removed: int) -> str:
    binary = "binary" if files and all(file.is_binary for file in files) else ""
    return ", ".join(part for part in (counted(count, "file"), plus_minus(added, removed) or binary) if part)


def change_summary(changes: FolderChanges) -> str:
    """Return what is written on a message: "3 files, +24 −7"; nothing if nothing has changed and that is known."""
    if changes.files:
        return _words(changes.files, changes.count, changes.added, changes.removed)
    return UNKNOWN if changes.note else ""


def record_words(record: ChangeRecord) -> str:
    """Return a record in a sentence: who changed what, how much, and what is not known about it."""
    changes = record.changes
    lines = plus_minus(changes.added, changes.removed)
    unfinished = " (not finished yet)" if record.state == "begun" else ""
    note = f" {changes.note}" if changes.note else ""
    return f"{_sentence(record)}{f' ({lines})' if lines else ''}{unfinished}.{note}"


def _sentence(record: ChangeRecord) -> str:
    who, turn = author_of(record), f"turn {record.turn_id}"
    if isinstance(record, CombinedChanges):
        return _combined(record)
    is_known = bool(record.changes.files) or not record.changes.note
    much = counted(record.changes.count, "file") if is_known else "which files is not known"
    match record.kind:
        case "turn" if not is_known:
            return f"What {who} changed in {turn} is not known"
        case "people" if not is_known:
            return "What was changed between turns is not known"
        case "check" if not is_known:
            return f"What {who} changed after {turn} is not known"
        case "turn":
            return f"{who} changed {much} in {turn}"
        case "people":
            return f"{who} changed {much} between turns"
        case "undo":
            return f"{who} took back {undone_words(record)}: {much}"
        case "redo":
            return f"{who} brought back {undone_words(record)}: {much}"
        case "rewind":
            return f"{who} put the files back to how they were after {turn}: {much}"
        case "take":
            return f"{who} took what {record.member} made of the files in {turn}: {much}"
        case "collision":
            return _collision(record)
        case "merge":
            return f"{who}, {turn}, merged: {much}"
        case "check":
            return f"{who} itself changed {much} after {turn}"


def _combined(record: CombinedChanges) -> str:
    first, last = record.turn_id, record.other_turn
    turns = f" from turn {first} to turn {last}" if first != last else f" since turn {first}" if first else ""
    folder = record.changes.folder
    much = f"{counted(record.changes.count, 'file')} in {folder}"
    again = f"all files in {folder} are again what they were"
    return f"All changes{turns} together: {much if record.changes.files else again}"


def undone_words(record: ChangeRecord) -> str:
    """Return what an undo took back, or a redo brought back."""
    match record.about:
        case "rewind":
            return f"the rewind to turn {record.turn_id}"
        case "take":
            return f"/take {record.turn_id}"
        case _ if record.check:
            return f"what the check {record.check} changed after turn {record.turn_id}"
        case _ if record.kind == "undo" and record.changes.programs:
            return f"what turn {record.turn_id} changed in files that make programs run"
        case _:
            return f"turn {record.turn_id}"


def way_back(record: ChangeRecord) -> Literal["undo", "redo", ""]:
    """Return the command that takes a change back, given its turn; nothing if there is none."""
    if record.kind == "undo":
        return "redo"
    # What goes to the files of a turn is not a change that the turn made.
    is_of_turn = record.kind in ("turn", "redo", "merge", "check") and record.about not in ("rewind", "take")
    return "undo" if is_of_turn else ""


def _collision(record: ChangeRecord) -> str:
    names, count = [repr(file.path) for file in record.changes.files[:FEW]], record.changes.count
    listed = ", ".join(names) + (f" and {count - FEW:,} more" if count > FEW else "")
    other, turn = f"{record.other} (turn {record.other_turn})", f"{record.member} (turn {record.turn_id})"
    if not record.other_turn:
        return f"Collision: {record.other} and {turn} changed {listed} at the same time"
    both = f"{other} and {turn} {'both changed' if record.is_sure else 'may both have changed'} {listed}"
    return f"Collision: {both}. Both versions are kept: /take {record.other_turn} or /take {record.turn_id}"


def author_of(record: ChangeRecord) -> str:
    """Return who made a change: a member, a check, the person who wanted it, or somebody between turns."""
    if record.kind == "check":
        return f"The check {record.check}"
    if record.kind in ("turn", "merge", "collision"):
        return record.member or "An agent"
    return record.person or SOMEBODY


def changes_of(records: Sequence[ChangeRecord], home: Path | None = None) -> Changes:
    """Return what was changed in a conversation: per turn, per member, and all together. Patches are not needed.

    `home` is where it is kept what files were: with it, several changes become one.
    """
    made = [record for record in records if record.changes.files or record.changes.note]
    authors: dict[str, list[ChangeRecord]] = {}
    for record in made:
        # What was brought together is counted for the turn that did it, and a collision is not a change of its own.
        if record.kind not in ("merge", "collision"):
            authors.setdefault(author_of(record), []).append(record)
    parts = combine(made, home)
    together = group_of(parts, key="all", title="All together")
    whole = {(file.folder, file.path): file for file in _summed(counted_once(made))}
    combined = {(file.folder, file.path): file for file in together.files}
    members = [group_of(theirs, key=author, title=author) for author, theirs in authors.items()]
    return Changes(
        turns=tuple(group_of([one], key=str(one.number), title=_heading(one)) for one in made),
        members=tuple(_of_member(group, whole, combined) for group in members),
        together=together,
        combined=tuple(parts),
    )


Files = dict[tuple[str, str], ChangedFile]
"""By their folders and paths."""


def _of_member(group: ChangeGroup, whole: Files, combined: Files) -> ChangeGroup:
    """Return a member's group: a file that nobody else has changed is as it is in all together."""
    files, is_shared = [], False
    for file in group.files:
        everybodys = whole.get((file.folder, file.path), file)
        one = combined.get((file.folder, file.path), file)
        is_shared = is_shared or everybodys.parts != file.parts
        is_same = everybodys.parts == file.parts and one.renamed_from == file.renamed_from
        files.append(one if is_same else file)
    notes = (*group.notes, ALSO_BY_OTHERS) if is_shared else group.notes
    return replace(group, files=tuple(files), summary=_summary(files, notes=group.notes), notes=notes)


def group_of(records: Sequence[ChangeRecord], *, key: str, title: str) -> ChangeGroup:
    """Return records as one group: each file once, from what it was before the first to what it is after the last."""
    files = tuple(_summed(records))
    notes = tuple(dict.fromkeys(one.changes.note for one in records if one.changes.note))
    is_known = any(isinstance(record, CombinedChanges) for record in records)
    return ChangeGroup(
        key=key,
        title=title,
        summary=_summary(files, notes=() if is_known else notes),
        files=files,
        parts=tuple(map(key_of, records)),
        notes=notes,
    )


def _summary(files: Sequence[ChangedFile], *, notes: Sequence[str]) -> str:
    return files_words(files) if files or not notes else UNKNOWN


def _heading(record: ChangeRecord) -> str:
    person, turn = record.person or SOMEBODY, f"turn {record.turn_id}"
    return {
        "turn": f"{turn} · {record.member}" if record.member else turn,
        "people": f"{person}, between turns",
        "undo": f"{person} took back {undone_words(record)}",
        "redo": f"{person} brought back {undone_words(record)}",
        "rewind": f"{person} went back to after {turn}",
        "take": f"{person} took what {turn} made",
        "collision": f"collision · {record.other} and {record.member}",
        "merge": f"{turn} · {record.member}, merged",
        "check": f"{author_of(record)}, after {turn}",
    }[record.kind]


class _Life(Struct):
    """What happened to one file in several records."""

    folder: str
    first_path: str
    first_kind: FileKind
    old: FileState | None
    last: FileChange
    added: int = 0
    removed: int = 0
    is_binary: bool = False
    parts: tuple[str, ...] = ()

    def went_on(self, file: FileChange, key: str) -> None:
        self.last = file
        self.added, self.removed = self.added + file.added, self.removed + file.removed
        self.is_binary = self.is_binary or file.is_binary
        self.parts = (*self.parts, key)


def _summed(records: Iterable[ChangeRecord]) -> list[ChangedFile]:
    """Return each file once, by their names, unless it is again what it was."""
    lives: dict[tuple[str, str], _Life] = {}
    for record in records:
        folder = record.changes.folder
        # A rename first takes the old name away: two files may change places.
        begun = {file: lives.pop((folder, file.renamed_from or file.path), None) for file in record.changes.files}
        for file, life in begun.items():
            if life is None:
                before = file.renamed_from or file.path
                life = _Life(folder=folder, first_path=before, first_kind=file.kind, old=file.old, last=file)
            life.went_on(file, key_of(record))
            lives[folder, file.path] = life
    ended = [_ended(life) for life in lives.values() if not _is_as_before(life)]
    return sorted(ended, key=lambda file: (file.folder, file.path))


def _is_as_before(life: _Life) -> bool:
    if len(life.parts) < 2 or life.first_path != life.last.path:
        return False
    if life.old is None or life.last.new is None:
        # Where only names and sizes are known, that there is no state says nothing.
        return (life.first_kind, life.last.kind) == ("added", "deleted")
    return life.old == life.last.new


def _ended(life: _Life) -> ChangedFile:
    path, new = life.last.path, life.last.new
    renamed_from = life.first_path if life.old is not None and new is not None and life.first_path != path else ""
    kind: FileKind = life.last.kind
    if len(life.parts) > 1:
        kind = _kind(life, is_renamed=bool(renamed_from))
    return ChangedFile(
        folder=life.folder,
        path=path,
        renamed_from=renamed_from,
        kind=kind,
        added=life.added,
        removed=life.removed,
        is_binary=life.is_binary,
        parts=life.parts,
    )


def _kind(life: _Life, *, is_renamed: bool) -> FileKind:
    old, new = life.old, life.last.new
    if life.first_kind == "added" or life.last.kind == "deleted":
        return "added" if life.first_kind == "added" else "deleted"
    if is_renamed:
        return "renamed"
    only_mode = old is not None and new is not None and old.blob == new.blob and old.mode != new.mode
    return "mode" if only_mode else "changed"
