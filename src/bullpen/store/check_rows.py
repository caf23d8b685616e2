"""Runs of checks, as rows: added when they begin, finished once, and never changed after that.

The columns repeat what queries look for. They are compared with the packed record when it is read, so that a row in
which only one of them was changed is noticed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from sqlite3 import Connection

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.check_results import CheckResult
from bullpen.errors import StoreConflict, UnknownTurn
from bullpen.store.base import FindingKind
from bullpen.store.packing import DamagedData, packed, unpacked

COLUMNS = "sequence, turn, after_message, is_running, is_copy, record"
SELECT = f"SELECT {COLUMNS} FROM checks WHERE conversation = ?1"  # noqa: S608
OF_TURNS = "AND turn IN (SELECT value FROM json_each(?2)) AND +after_message BETWEEN ?3 AND ?4"
BETWEEN = "AND after_message BETWEEN ?2 AND ?3"
# With the plus sign, SQLite uses the index of what is looked for, and not one that is in this order already.
ORDER = "ORDER BY +after_message, +sequence"
RUNNING = "AND is_running = 1 ORDER BY +sequence"

Row = tuple[object, ...]


class Kept(Struct, frozen=True, array_like=True):
    """What is packed of a run."""

    result: CheckResult
    is_copy: bool


_decoder = msgspec.json.Decoder(Kept)


def add(db: Connection, conversation: int, messages: int, result: CheckResult, *, is_copy: bool = False) -> CheckResult:
    """Add a run under the next number, or under its own if it is a copy, and return it as it is stored."""
    check(result, messages, is_copy=is_copy, has_turn=is_copy or _has_turn(db, conversation, result.turn_id))
    number = result.number if is_copy else _highest(db, conversation) + 1
    if is_copy:
        check_free(number, is_taken=_row(db, conversation, number) is not None)
    stored = replace(result if is_copy else _after_its_reply(db, conversation, result), number=number)
    _insert(db, conversation, stored, is_copy=is_copy)
    return stored


def finish(db: Connection, conversation: int, messages: int, result: CheckResult) -> CheckResult:
    """Put a run that has ended in the place of one that is running, or raise StoreConflict."""
    row = _row(db, conversation, result.number)
    check_finishes(None if row is None else read(row), result)
    check(result, messages, is_copy=False, has_turn=_has_turn(db, conversation, result.turn_id))
    stored = _after_its_reply(db, conversation, result)
    db.execute("DELETE FROM checks WHERE conversation = ? AND sequence = ?", (conversation, result.number))
    _insert(db, conversation, stored, is_copy=False)
    return stored


def between(db: Connection, conversation: int, first: int, last: int) -> list[CheckResult]:
    """Return the runs after these messages, in their order."""
    return [read(row) for row in db.execute(f"{SELECT} {BETWEEN} {ORDER}", (conversation, first, last))]


def of_turns(db: Connection, conversation: int, turn_ids: Sequence[str], first: int, last: int) -> list[CheckResult]:
    """Return those after some turns, without a look at others."""
    values = (conversation, msgspec.json.encode(turn_ids).decode(), first, last)
    return [read(row) for row in db.execute(f"{SELECT} {OF_TURNS} {ORDER}", values)]


def running(db: Connection, conversation: int) -> list[CheckResult]:
    """Return those that have not ended, oldest first."""
    return [read(row) for row in db.execute(f"{SELECT} {RUNNING}", (conversation,))]


def read(row: Row) -> CheckResult:
    """Return the run in a row, or raise DamagedData."""
    *columns, blob = row
    try:
        kept = _decoder.decode(unpacked(blob))
    except msgspec.MsgspecError as error:
        raise DamagedData(f"a check cannot be read: {error}") from error
    if _columns(kept) != tuple(columns):
        raise DamagedData(f"check number {kept.result.number} is not the one that its row is about")
    return kept.result


def problems(db: Connection, conversation: int, messages: int) -> Iterator[tuple[FindingKind, str]]:
    """Yield which runs cannot be read, and what others say that cannot be."""
    rows = db.execute(f"SELECT is_copy, {SELECT.removeprefix('SELECT ')} ORDER BY sequence", (conversation,))
    yield from problems_in(rows, messages, lambda turn_id: _has_turn(db, conversation, turn_id))


def problems_in(
    rows: Iterable[Row], messages: int, has_turn: Callable[[str], bool]
) -> Iterator[tuple[FindingKind, str]]:
    """Yield the same about rows that begin with is_copy, followed by COLUMNS."""
    for is_copy, *row in rows:
        try:
            result = read(tuple(row))
        except DamagedData as error:
            yield "record", f"check number {row[0]} cannot be read: {error}"
            continue
        if not is_copy and not has_turn(result.turn_id):
            yield "turn", f"check number {result.number} is of turn {result.turn_id!r}, which does not exist"
        if not 0 <= result.after_message <= messages:
            yield (
                "turn",
                f"check number {result.number} came after message {result.after_message}, which does not exist",
            )


def _after_its_reply(db: Connection, conversation: int, result: CheckResult) -> CheckResult:
    """Return a run at the place where its turn has ended, whenever it ran."""
    query = "SELECT coalesce(reply, after_message) FROM turns WHERE conversation = ? AND id = ?"
    place = db.execute(query, (conversation, result.turn_id)).fetchone()
    return result if place is None or place[0] is None else replace(result, after_message=place[0])


def check_finishes(running: CheckResult | None, result: CheckResult) -> None:
    """Raise StoreConflict unless a run is the end of this one."""
    if running is None or running.state != "running":
        why = "has not begun" if running is None else "has ended already"
        raise StoreConflict(f"Check number {result.number} {why}, so it cannot end now. Nothing was stored.")
    if result.state == "running" or _subject(result) != _subject(running):
        raise StoreConflict(f"Check number {result.number} can only end as what it began. Nothing was stored.")


def check_free(number: int, *, is_taken: bool) -> None:
    """Raise StoreConflict if a run cannot be copied to a number."""
    if number < 1 or is_taken:
        raise StoreConflict(f"A check cannot be copied to number {number}, which is not free. Nothing was stored.")


def check(result: CheckResult, messages: int, *, is_copy: bool, has_turn: bool) -> None:
    """Raise an error for a run that cannot be."""
    if not has_turn:
        raise UnknownTurn(result.turn_id)
    if not 0 <= result.after_message <= messages:
        raise ValueError(f"A check cannot come after message {result.after_message} of {messages}.")
    if is_copy and result.state == "running":
        raise ValueError("A check that is copied cannot be running.")


def _has_turn(db: Connection, conversation: int, turn_id: str) -> bool:
    query = "SELECT 1 FROM turns WHERE conversation = ? AND id = ?"
    return db.execute(query, (conversation, turn_id)).fetchone() is not None


def _subject(result: CheckResult) -> tuple[str, str, tuple[str, ...], str]:
    return result.turn_id, result.name, result.command, result.workspace


def _columns(kept: Kept) -> Row:
    """Return what COLUMNS must be, up to the record itself."""
    result = kept.result
    place = (result.number, result.turn_id, result.after_message)
    return (*place, int(result.state == "running"), int(kept.is_copy))


def _insert(db: Connection, conversation: int, result: CheckResult, *, is_copy: bool) -> None:
    db.execute(
        f"INSERT INTO checks (conversation, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (conversation, *values_of(result, is_copy=is_copy)),
    )


def values_of(result: CheckResult, *, is_copy: bool) -> Row:
    """Return what COLUMNS of a run are."""
    kept = Kept(result=result, is_copy=is_copy)
    data = msgspec.json.encode(kept)
    _check_readable(data, kept)
    return (*_columns(kept), packed(data))


def _check_readable(data: bytes, kept: Kept) -> None:
    """Raise TypeError for a run that could be written but not read: in an unknown state, for example."""
    try:
        is_unchanged = _decoder.decode(data) == kept
    except msgspec.MsgspecError as error:
        raise TypeError(f"This check cannot be stored: {error}.") from error
    if not is_unchanged:
        raise TypeError("This check cannot be stored: it would not be the same when read again.")


def _row(db: Connection, conversation: int, number: int) -> Row | None:
    row: Row | None = db.execute(f"{SELECT} AND sequence = ?2", (conversation, number)).fetchone()
    return row


def _highest(db: Connection, conversation: int) -> int:
    query = "SELECT max(sequence) FROM checks WHERE conversation = ?"
    return int(db.execute(query, (conversation,)).fetchone()[0] or 0)
