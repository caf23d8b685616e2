"""Which changes of files an undo takes back, a redo brings back, or a rewind goes to; pure."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from bullpen.errors import NoConflict, NothingToUndo
from bullpen.file_changes import ChangeRecord, FileChange, FileKind, FileState
from bullpen.files.own_paths import is_candidates
from bullpen.files.paths import path_before, path_of
from bullpen.routing.progress import FilesLeft

CAN_BE_UNDONE = ("turn", "merge", "rewind", "check", "take")
AIMED_AT_A_TURN = ("rewind", "take")
"""These go to what a turn made, and do not count as its changes."""
NOT_PICKED = "Turn {} was one of several, and its result was not picked: none of it is in the shared folder."
INVERSE: dict[FileKind, FileKind] = {"added": "deleted", "deleted": "added"}


def taken_back(records: Sequence[ChangeRecord]) -> frozenset[int]:
    """Return the numbers of the records that are taken back; an undo that is taken back itself does not count."""
    gone: set[int] = set()
    for record in reversed(records):
        if record.undoes and record.state == "done" and record.number not in gone:
            gone.add(record.undoes)
    return frozenset(gone)


def to_undo(records: Sequence[ChangeRecord], turn_id: str | None) -> ChangeRecord:
    """Return the record to take back: the last one of a turn, or else the last that no check made by itself."""
    gone = taken_back(records)
    merged = _merged(records)
    # What was done in an agent's own workspace is taken back where it was brought to.
    mine = [
        record
        for record in records
        if record.kind in CAN_BE_UNDONE
        and _has_files(record)
        and (record.kind not in ("turn", "check") or not _is_elsewhere(record, merged))
    ]
    if turn_id is not None:
        mine = [record for record in mine if record.kind not in AIMED_AT_A_TURN and record.turn_id == turn_id]
        if not mine and _was_not_picked(records, turn_id):
            raise NothingToUndo(NOT_PICKED.format(turn_id))
        if not mine:
            raise NothingToUndo(f"Turn {turn_id} changed no files that bullpen knows of, so there is nothing to undo.")
    left = [record for record in mine if record.number not in gone]
    if turn_id is None:
        return _last_but_for_checks(left)
    if not left:
        raise NothingToUndo(f"Turn {turn_id} is taken back already. To bring it back, redo it.")
    return left[-1]


def left_by_undo(records: Sequence[ChangeRecord], turn_id: str | None) -> tuple[str, FilesLeft] | None:
    """Return the turn that an undo takes back and what it leaves of it, if a person perhaps changed some of its files.

    Raises NothingToUndo, as to_undo does.
    """
    record = to_undo(records, turn_id)
    files = tuple(file.path for file in record.changes.files if file.is_perhaps_a_persons)
    return (record.turn_id, FilesLeft(member=record.member, files=files)) if files else None


def _last_but_for_checks(left: Sequence[ChangeRecord]) -> ChangeRecord:
    """Return the last record that a person means who names none: a check may leave a cache after each turn."""
    meant = [record for record in left if record.kind != "check"]
    if meant:
        return meant[-1]
    nothing = "There is nothing to undo: no turn has changed files, or all of them are taken back."
    if left:
        check, turn = left[-1].check, left[-1].turn_id
        nothing += f" What the check {check} changed after turn {turn} is still there: /undo {turn} takes that back."
    raise NothingToUndo(nothing)


def to_redo(records: Sequence[ChangeRecord], turn_id: str | None) -> ChangeRecord:
    """Return the undo to take back: the one of a turn, or else of a rewind to it; without a turn, the last one."""
    gone = taken_back(records)
    undone = [
        record
        for record in records
        if record.kind == "undo" and record.number not in gone and not _is_in_a_later_one(record, records)
    ]
    mine = [record for record in undone if turn_id is None or record.turn_id == turn_id]
    if turn_id is not None:
        mine = [record for record in mine if record.about not in AIMED_AT_A_TURN] or mine
    if not mine:
        what = "nothing was taken back" if turn_id is None else f"turn {turn_id} is not taken back"
        raise NothingToUndo(f"There is nothing to redo: {what}.")
    return mine[-1]


def _is_in_a_later_one(undo: ChangeRecord, records: Sequence[ChangeRecord]) -> bool:
    """Return whether what was taken back in part was taken back as a whole later: a redo of that brings back both."""
    wholes = {record.undoes: record.number for record in records if record.kind == "undo" and record.undoes}
    same = [one for one in records if (one.turn_id, one.changes.folder) == (undo.turn_id, undo.changes.folder)]
    return not undo.undoes and any(
        wholes.get(one.number, 0) > undo.number for one in same if undo.about in (None, one.kind)
    )


def who_changed(records: Sequence[ChangeRecord], since: ChangeRecord, paths: Collection[str]) -> str:
    """Return what changed files last after a record, and what to do about it."""
    gone, numbers = taken_back(records), [record.number for record in records]
    for record in reversed(records[numbers.index(since.number) + 1 :]):
        is_there = record.kind in CAN_BE_UNDONE and record.number not in gone
        if is_there and record.changes.folder == since.changes.folder and _touches(record, paths):
            return _that_changed(record)
    return "Keep or undo that first"


def _touches(record: ChangeRecord, paths: Collection[str]) -> bool:
    return any(path in paths for file in record.changes.files for path in (file.path, file.renamed_from))


def _that_changed(record: ChangeRecord) -> str:
    turn, first = f"turn {record.turn_id}", f"/undo {record.turn_id} first, or /rewind"
    match record.kind:
        case "rewind":
            return f"The rewind to {turn} changed that: /undo first"
        case "take":
            return f"/take {record.turn_id} changed that: /undo first"
        case "check":
            return f"The check {record.check} changed that after {turn}: {first}"
        case _:
            return f"{turn.capitalize()} ({record.member}) changed that: {first}"


def to_rewind_to(records: Sequence[ChangeRecord], turn_id: str) -> ChangeRecord:
    """Return the record of a turn whose files a rewind goes back to."""
    merged = _merged(records)
    if turn_id not in merged and _was_not_picked(records, turn_id):
        raise NothingToUndo(NOT_PICKED.format(turn_id))
    kind = "merge" if turn_id in merged else "turn"
    mine = [record for record in records if record.kind == kind and record.turn_id == turn_id]
    if not mine or not mine[-1].changes.after:
        raise NothingToUndo(f"bullpen does not know what the files were after turn {turn_id}: it did not look at them.")
    return mine[-1]


def versions_of(records: Sequence[ChangeRecord], turn_id: str) -> tuple[str, dict[bytes, FileState | None]]:
    """Return the folder of a turn's latest collision, and what the turn made of the files that collided there."""
    folder, found = "", dict[bytes, FileState | None]()
    for record in records:
        if record.kind == "collision" and turn_id in (record.turn_id, record.other_turn):
            if record.changes.folder != folder:
                folder, found = record.changes.folder, {}
            for file in record.changes.files:
                found |= _versions(file, new=turn_id == record.turn_id)
    if not found:
        raise NoConflict(turn_id)
    return folder, found


def programs_to_undo(
    records: Sequence[ChangeRecord], turn_id: str, paths: Collection[str]
) -> list[tuple[ChangeRecord, dict[bytes, FileState | None]]]:
    """Return in which records a turn changed files that are to be put back, the last one first, and their states."""
    gone, merged = taken_back(records), turn_id in _merged(records)
    mine = [
        record
        for record in records
        if record.turn_id == turn_id and _has_files(record) and record.number not in gone
        # What was brought into the shared folder is taken back there, and comes from there to the agent's own.
        if record.kind == "merge" or (record.kind in ("turn", "check") and not merged)
    ]
    found = [(record, states_before(record, paths)) for record in reversed(mine)]
    return [(record, states) for record, states in found if states]


def surely_of_the_turn(files: Collection[FileChange]) -> list[FileChange]:
    """Return which changes can be taken back while those that a person may have made stay.

    A file that the turn moved stays, too, if a person may have written another one under its old name: what was in it
    would be nowhere.
    """
    replaced = {file.old.blob for file in files if file.is_perhaps_a_persons and file.old is not None}
    return [file for file in files if not file.is_perhaps_a_persons and not _has_only(file, replaced)]


def _has_only(file: FileChange, blobs: Collection[str]) -> bool:
    """Return whether a file is new, and what is in it is one of these; all empty files are alike."""
    is_empty = not (file.added or file.is_binary)
    return file.kind == "added" and not is_empty and file.new is not None and file.new.blob in blobs


def states_before(record: ChangeRecord, paths: Collection[str]) -> dict[bytes, FileState | None]:
    """Return what some files were before a change."""
    states: dict[bytes, FileState | None] = {}
    for file in record.changes.files:
        if file.path in paths or file.renamed_from in paths:
            states |= _versions(file, new=False)
    return states


def _versions(file: FileChange, *, new: bool) -> dict[bytes, FileState | None]:
    if file.kind != "renamed":
        return {path_of(file): file.new if new else file.old}
    return {path_before(file): None if new else file.old, path_of(file): file.new if new else None}


def inverse(files: Collection[FileChange]) -> tuple[FileChange, ...]:
    """Return the changes that undo changes."""
    return tuple(_inverse(file) for file in files)


def _inverse(file: FileChange) -> FileChange:
    turned = replace(
        file,
        kind=INVERSE.get(file.kind, file.kind),
        old=file.new,
        new=file.old,
        added=file.removed,
        removed=file.added,
        is_perhaps_a_persons=False,
    )
    if file.kind != "renamed":
        return turned
    return replace(
        turned,
        path=file.renamed_from,
        raw_path=file.raw_renamed_from,
        renamed_from=file.path,
        raw_renamed_from=file.raw_path,
    )


def _merged(records: Sequence[ChangeRecord]) -> frozenset[str]:
    """Return the turns whose changes were brought from an agent's own workspace into the shared folder."""
    return frozenset(record.turn_id for record in records if record.kind == "merge" and _has_files(record))


def _is_elsewhere(record: ChangeRecord, merged: Collection[str]) -> bool:
    """Return whether what a turn did is to be taken back where it was brought to, or is in no shared folder at all."""
    return record.turn_id in merged or is_candidates(record.changes.folder)


def _was_not_picked(records: Sequence[ChangeRecord], turn_id: str) -> bool:
    return any(record.turn_id == turn_id and is_candidates(record.changes.folder) for record in records)


def _has_files(record: ChangeRecord) -> bool:
    return record.state == "done" and bool(record.changes.files)
