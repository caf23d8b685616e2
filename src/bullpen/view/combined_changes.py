"""Changes of one folder as one: from what its files were before the first of them to what they are after the last."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from bullpen.conversation.file_history import files_home
from bullpen.errors import FilesNotKept
from bullpen.file_changes import ChangeRecord
from bullpen.files.kept import compare_kept
from bullpen.files.own_paths import is_candidates
from bullpen.store.base import Store

WITH_PEOPLES = "What people changed in between is part of it."
ONE_BY_ONE = "What was changed in {} is listed change by change, since it cannot be combined: {}."
BROUGHT_UP_TO_DATE = "that worktree was brought up to date in between"
NOT_KEPT = "what its files were is not kept any more"


class CombinedChanges(ChangeRecord, frozen=True, kw_only=True):
    """Several changes of one folder as one.

    It is never stored. Like what people changed, it is nobody's turn, and cannot be taken back at once. Its number is
    that of the first change, its turn the first one, and its other turn the last.
    """

    last: int
    """The number of the last change."""


def key_of(record: ChangeRecord) -> str:
    """Return what tells a change from others in a conversation: its number, or those of the first and the last."""
    return f"{record.number}-{record.last}" if isinstance(record, CombinedChanges) else str(record.number)


def last_number(record: ChangeRecord) -> int:
    """Return the number of a change, or of the last one in it."""
    return record.last if isinstance(record, CombinedChanges) else record.number


def kept_beside(store: Store, _conversation_id: str = "") -> Path | None:
    """Return where it is kept what files were."""
    return files_home(store)


def counted_once(records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """Return records without collisions, and without turns whose work was merged, or not picked."""
    merged = {record.turn_id for record in records if record.kind == "merge"}
    return [
        record
        for record in records
        if record.kind != "collision"
        and (record.kind != "turn" or not (record.turn_id in merged or is_candidates(record.changes.folder)))
    ]


def repeats(merge: ChangeRecord, turn: ChangeRecord | None) -> bool:
    """Return whether a merge brought into the shared folder exactly what its turn had changed."""
    if turn is None or merge.kind != "merge" or (turn.kind, turn.turn_id) != ("turn", merge.turn_id):
        return False
    return (merge.changes.files, merge.changes.patch) == (turn.changes.files, turn.changes.patch)


def without_repeats(records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """Return records without merges that brought exactly what their turns had changed."""
    turns = {record.turn_id: record for record in records if record.kind == "turn"}
    return [record for record in records if not repeats(record, turns.get(record.turn_id))]


def combine(records: Sequence[ChangeRecord], home: Path | None) -> list[ChangeRecord]:
    """Return the changes of each folder as one. Where its earlier files are not kept, they stay several, and say so."""
    folders: dict[str, list[ChangeRecord]] = {}
    for record in counted_once(records):
        folders.setdefault(record.changes.folder, []).append(record)
    parts = []
    for folder, some in folders.items():
        try:
            parts.append(_as_one(some, home))
        except FilesNotKept as error:
            parts += [_with_note(some[0], ONE_BY_ONE.format(folder, error.reason)), *some[1:]]
    return parts


def with_combined(records: Sequence[ChangeRecord], home: Path | None) -> list[ChangeRecord]:
    """Return the same changes to be read line by line: as few as possible, and after them what collided."""
    combined = [*combine(records, home), *(record for record in records if record.kind == "collision")]
    # Of work that was not picked nothing is left, but it can be read.
    return combined or list(records)


def _with_note(record: ChangeRecord, note: str) -> ChangeRecord:
    return replace(record, changes=replace(record.changes, note=f"{record.changes.note} {note}".strip()))


def _as_one(records: Sequence[ChangeRecord], home: Path | None) -> ChangeRecord:
    """Return all changes of one folder, given in the order in which they ended, as one; raises FilesNotKept."""
    # Numbers are given when a turn begins.
    first, last = min(records, key=lambda record: record.number), records[-1]
    if len(records) == 1:
        return first
    folder = first.changes.folder
    if home is None:
        raise FilesNotKept(folder, NOT_KEPT)
    gaps = [other for one, other in pairwise(records) if one.changes.after != other.changes.before]
    if gaps and home in Path(folder).parents:
        raise FilesNotKept(folder, BROUGHT_UP_TO_DATE)
    changes = compare_kept(home, folder, first.changes.before, last.changes.after)
    # Turns that ran at the same time do not follow each other; else it was somebody whose changes are not recorded.
    is_peoples = any(one.kind == "people" for one in records) or any(one.kind != "turn" for one in gaps)
    notes = dict.fromkeys(
        [*([WITH_PEOPLES] if is_peoples else []), *(one.changes.note for one in records if one.changes.note)]
    )
    turns = [record.turn_id for record in records if record.turn_id] or [""]
    return CombinedChanges(
        number=first.number,
        last=last.number,
        kind="people",
        turn_id=turns[0],
        other_turn=turns[-1],
        at=last.at,
        after_message=last.after_message,
        changes=replace(changes, note=" ".join(notes)),
    )
