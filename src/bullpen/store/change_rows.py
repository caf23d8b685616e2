"""What changed in folders, as rows: added with a number, finished once if it was only begun, and else never changed.

The columns repeat what queries look for. They are compared with the packed record when it is read, and so is the hash
of the patch, so that a row in which only one of them was changed is noticed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from sqlite3 import Connection

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import StoreConflict, UnknownTurn
from bullpen.file_changes import MOST_PATCH_BYTES, ChangeRecord, FolderChanges
from bullpen.store.base import FindingKind
from bullpen.store.packing import DamagedData, packed, unpacked

COLUMNS = "sequence, turn, folder, after_message, finished, is_copy, record"
SELECT = f"SELECT {COLUMNS}, patch FROM changes WHERE conversation = ?1"  # noqa: S608
SELECT_WITHOUT_PATCH = f"SELECT {COLUMNS}, NULL FROM changes WHERE conversation = ?1"  # noqa: S608
OF_TURNS = "AND turn IN (SELECT value FROM json_each(?2))"
# With the plus signs, SQLite uses the index of what is looked for, and not one that is in this order already.
ORDER = "ORDER BY +after_message, finished IS NULL, finished, sequence"
AND_BETWEEN = "AND +after_message BETWEEN ?3 AND ?4"
BETWEEN = "AND after_message BETWEEN ?2 AND ?3"
LAST_OF_FOLDER = "AND is_copy = 0 AND folder = ?2 AND finished IS NOT NULL ORDER BY finished DESC LIMIT 1"
BEGUN = "AND finished IS NULL ORDER BY +sequence"
CHECKED = f"SELECT is_copy, {COLUMNS}, patch FROM changes WHERE conversation = ? ORDER BY sequence"  # noqa: S608
FILE_BEGINS = b"\ndiff --git "

Row = tuple[object, ...]


class Kept(Struct, frozen=True, array_like=True):
    """What is packed of a record."""

    record: ChangeRecord
    """Without its patch."""
    patch_hash: bytes
    """The SHA-256 of the patch; nothing if there is none."""
    finished: int | None
    is_copy: bool


_decoder = msgspec.json.Decoder(Kept)


def add(
    db: Connection, conversation: int, messages: int, record: ChangeRecord, *, is_copy: bool = False
) -> ChangeRecord:
    """Add a record under the next number, or under its own if it is a copy, and return it as it is stored."""
    _check(db, conversation, messages, record, is_copy=is_copy)
    record = record if is_copy else after_its_reply(record, _end_of_turn(db, conversation, record))
    number = record.number if is_copy else _highest(db, conversation, "sequence") + 1
    if is_copy:
        check_free(number, is_taken=_row(db, conversation, number) is not None)
    stored = as_stored(record, number)
    _insert(db, conversation, stored, is_copy=is_copy)
    return stored


def finish(db: Connection, conversation: int, messages: int, number: int, record: ChangeRecord) -> ChangeRecord:
    """Put a record that is done in the place of one that was begun, or raise StoreConflict."""
    row = _row(db, conversation, number)
    check_finishes(None if row is None else read(row, has_patch=False), number, record)
    _check(db, conversation, messages, record, is_copy=False)
    stored = as_stored(after_its_reply(record, _end_of_turn(db, conversation, record)), number)
    db.execute("DELETE FROM changes WHERE conversation = ? AND sequence = ?", (conversation, number))
    _insert(db, conversation, stored, is_copy=False)
    return stored


def find(db: Connection, conversation: int, number: int) -> ChangeRecord | None:
    """Return the record with a number."""
    row = db.execute(f"{SELECT} AND sequence = ?2", (conversation, number)).fetchone()
    return None if row is None else read(row)


def between(db: Connection, conversation: int, first: int, last: int, *, patches: bool) -> list[ChangeRecord]:
    """Return the changes after these messages, in their order, and those that are only begun at the end of each."""
    rows = db.execute(f"{_select(patches)} {BETWEEN} {ORDER}", (conversation, first, last))
    return [read(row, has_patch=patches) for row in rows]


def of_turns(
    db: Connection, conversation: int, turn_ids: Sequence[str], first: int, last: int, *, patches: bool
) -> list[ChangeRecord]:
    """Return those of some turns, without a look at the changes of others."""
    values = (conversation, msgspec.json.encode(turn_ids).decode(), first, last)
    rows = db.execute(f"{_select(patches)} {OF_TURNS} {AND_BETWEEN} {ORDER}", values)
    return [read(row, has_patch=patches) for row in rows]


def last_of(db: Connection, conversation: int, folder: str) -> ChangeRecord | None:
    """Return the record of a folder that was done last in this conversation itself."""
    row = db.execute(f"{SELECT} {LAST_OF_FOLDER}", (conversation, folder)).fetchone()
    return None if row is None else read(row)


def begun(db: Connection, conversation: int) -> list[ChangeRecord]:
    """Return what was begun and is not done, oldest first."""
    rows = db.execute(f"{SELECT} {BEGUN}", (conversation,))
    return [read(row) for row in rows]


def read(row: Row, *, has_patch: bool = True) -> ChangeRecord:
    """Return the record in a row, or raise DamagedData; without its patch if that was left out of the row."""
    *columns, blob, patch = row
    try:
        kept = _decoder.decode(unpacked(blob))
    except msgspec.MsgspecError as error:
        raise DamagedData(f"changes cannot be read: {error}") from error
    if _columns(kept) != tuple(columns):
        raise DamagedData(f"changes number {kept.record.number} are not those that their row is about")
    if not has_patch:
        return kept.record
    return replace(kept.record, changes=replace(kept.record.changes, patch=_patch(patch, kept)))


def problems(db: Connection, conversation: int, messages: int) -> Iterator[tuple[FindingKind, str]]:
    """Yield which records cannot be read, and what others say that cannot be."""
    rows = db.execute(CHECKED, (conversation,))
    yield from problems_in(rows, messages, lambda turn_id: _has_turn(db, conversation, turn_id))


def problems_in(
    rows: Iterable[Row], messages: int, has_turn: Callable[[str], bool]
) -> Iterator[tuple[FindingKind, str]]:
    """Yield the same about rows of CHECKED."""
    for is_copy, *row in rows:
        sequence = row[0]
        try:
            record = read(tuple(row))
        except DamagedData as error:
            yield "record", f"changes number {sequence} cannot be read: {error}"
            continue
        if not is_copy and needs_turn(record) and not has_turn(record.turn_id):
            yield "turn", f"changes number {sequence} are of turn {record.turn_id!r}, which does not exist"
        if not 0 <= record.after_message <= messages:
            yield "turn", f"changes number {sequence} came after message {record.after_message}, which does not exist"
        if _claims_files(record):
            yield "turn", f"changes number {sequence} have a patch, but name no files"


def check_finishes(begun: ChangeRecord | None, number: int, record: ChangeRecord) -> None:
    """Raise StoreConflict unless a record is what was begun under a number, done."""
    if begun is None or begun.state != "begun":
        why = "were not begun" if begun is None else "are done already"
        raise StoreConflict(f"Changes number {number} {why}, so they cannot be finished. Nothing was stored.")
    if record.state != "done" or _subject(record) != _subject(begun):
        raise StoreConflict(f"Changes number {number} can only be finished as what they began. Nothing was stored.")


def check_free(number: int, *, is_taken: bool) -> None:
    """Raise StoreConflict if changes cannot be copied to a number."""
    if number < 1 or is_taken:
        raise StoreConflict(f"Changes cannot be copied to number {number}, which is not free. Nothing was stored.")


def after_its_reply(record: ChangeRecord, end_of_turn: int | None) -> ChangeRecord:
    """Return the changes of a turn that has ended at the place where it did, whenever they were looked for."""
    if record.kind != "turn" or record.state != "done" or end_of_turn is None:
        return record
    return replace(record, after_message=end_of_turn)


def _end_of_turn(db: Connection, conversation: int, record: ChangeRecord) -> int | None:
    """Return the message that a turn ended with, or after which it ended without one; None: it has not ended."""
    query = "SELECT coalesce(reply, after_message) FROM turns WHERE conversation = ? AND id = ?"
    (place,) = db.execute(query, (conversation, record.turn_id)).fetchone() or (None,)
    return None if place is None else int(place)


def as_stored(record: ChangeRecord, number: int) -> ChangeRecord:
    """Return a record under its number, with a patch that is not too large."""
    return replace(record, number=number, changes=_bounded(record.changes))


def _bounded(changes: FolderChanges) -> FolderChanges:
    """Return changes whose patch is not too large: whole files at its end are left out."""
    data = changes.patch.encode()
    if len(data) <= MOST_PATCH_BYTES:
        return changes
    end = data.rfind(FILE_BEGINS, 0, MOST_PATCH_BYTES)
    return replace(changes, patch=data[: end + 1].decode(), patch_is_cut=True)


def _check(db: Connection, conversation: int, messages: int, record: ChangeRecord, *, is_copy: bool) -> None:
    has_turn = is_copy or not needs_turn(record) or _has_turn(db, conversation, record.turn_id)
    check(record, messages, is_copy=is_copy, has_turn=has_turn)


def check(record: ChangeRecord, messages: int, *, is_copy: bool, has_turn: bool) -> None:
    """Raise an error for a record that cannot be."""
    if not has_turn:
        raise UnknownTurn(record.turn_id)
    if not 0 <= record.after_message <= messages:
        raise ValueError(f"Changes cannot come after message {record.after_message} of {messages}.")
    if record.state == "begun" and (is_copy or record.kind == "people"):
        raise ValueError("What people changed, and what is copied, cannot be only begun.")
    if record.changes.total is not None:
        raise ValueError("Changes are stored with all of their files: without some, they could not be taken back.")
    if _claims_files(record):
        raise ValueError("Changes with a patch must name the files that it is about.")


def needs_turn(record: ChangeRecord) -> bool:
    """Return whether a record is about a turn of this conversation."""
    return record.kind == "turn" or bool(record.turn_id)


def _claims_files(record: ChangeRecord) -> bool:
    return record.state == "done" and bool(record.changes.patch) and not record.changes.files


def _has_turn(db: Connection, conversation: int, turn_id: str) -> bool:
    """Return whether there is such a turn here, or was in the conversation that changes were copied from."""
    key = (conversation, turn_id)
    here = "SELECT 1 FROM turns WHERE conversation = ? AND id = ?"
    copied = "SELECT 1 FROM changes WHERE conversation = ? AND turn = ? AND is_copy = 1"
    return bool(db.execute(here, key).fetchone() or db.execute(copied, key).fetchone())


def _subject(record: ChangeRecord) -> tuple[str, str, str]:
    return record.kind, record.turn_id, record.changes.folder


def _columns(kept: Kept) -> Row:
    """Return what COLUMNS must be, up to the record itself."""
    record = kept.record
    place = (record.number, record.turn_id, record.changes.folder, record.after_message)
    return (*place, kept.finished, int(kept.is_copy))


def _insert(db: Connection, conversation: int, record: ChangeRecord, *, is_copy: bool) -> None:
    values = values_of(record, _highest(db, conversation, "finished") + 1, is_copy=is_copy)
    db.execute(
        f"INSERT INTO changes (conversation, {COLUMNS}, patch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (conversation, *values),
    )


def values_of(record: ChangeRecord, finished: int, *, is_copy: bool) -> Row:
    """Return what COLUMNS and the patch of a record are; `finished` is its place if it is done."""
    patch = record.changes.patch.encode()
    kept = Kept(
        record=replace(record, changes=replace(record.changes, patch="")),
        patch_hash=_hash(patch),
        finished=finished if record.state == "done" else None,
        is_copy=is_copy,
    )
    data = msgspec.json.encode(kept)
    _check_readable(data, kept)
    return (*_columns(kept), packed(data), packed(patch) if patch else None)


def _check_readable(data: bytes, kept: Kept) -> None:
    """Raise TypeError for a record that could be written but not read: of an unknown kind, for example."""
    try:
        is_unchanged = _decoder.decode(data) == kept
    except msgspec.MsgspecError as error:
        raise TypeError(f"These changes cannot be stored: {error}.") from error
    if not is_unchanged:
        raise TypeError("These changes cannot be stored: they would not be the same when read again.")


def _row(db: Connection, conversation: int, number: int) -> Row | None:
    row: Row | None = db.execute(f"{SELECT_WITHOUT_PATCH} AND sequence = ?2", (conversation, number)).fetchone()
    return row


def _highest(db: Connection, conversation: int, column: str) -> int:
    query = f"SELECT max({column}) FROM changes WHERE conversation = ?"  # noqa: S608
    return int(db.execute(query, (conversation,)).fetchone()[0] or 0)


def _select(patches: bool) -> str:
    return SELECT if patches else SELECT_WITHOUT_PATCH


def _patch(blob: object, kept: Kept) -> str:
    patch = b"" if blob is None else unpacked(blob)
    if _hash(patch) != kept.patch_hash:
        raise DamagedData(f"the patch of changes number {kept.record.number} is not the one that was stored")
    return patch.decode()


def _hash(patch: bytes) -> bytes:
    return hashlib.sha256(patch).digest() if patch else b""
