"""What changed in folders, as rows: added with a number, finished once if it was only begun, and else never changed."""

from collections.abc import Iterable, Sequence

from psycopg import Cursor

from bullpen.file_changes import ChangeRecord
from bullpen.store.change_rows import (
    COLUMNS,
    after_its_reply,
    as_stored,
    check,
    check_finishes,
    check_free,
    needs_turn,
    read,
    values_of,
)
from bullpen.store.postgres.connections import Row
from bullpen.store.postgres.place import CONVERSATION, Place

FROM = f"FROM changes WHERE conversation = {CONVERSATION}"
SELECT = f"SELECT {COLUMNS}, patch {FROM}"
SELECT_WITHOUT_PATCH = f"SELECT {COLUMNS}, NULL {FROM}"
ORDER = "ORDER BY after_message, finished NULLS LAST, sequence"
BETWEEN = "AND after_message BETWEEN %(first)s AND %(last)s"
OF_TURNS = "AND turn = ANY(%(turns)s::text[])"
LAST_OF_FOLDER = "AND is_copy = 0 AND folder = %(folder)s AND finished IS NOT NULL ORDER BY finished DESC LIMIT 1"
BEGUN = "AND finished IS NULL ORDER BY sequence"
HIGHEST = f"SELECT coalesce(max(sequence), 0), coalesce(max(finished), 0) {FROM}"
# Turns here, and where each has ended; then turns of the conversation that changes were copied from.
TURNS = f"""
    SELECT id, coalesce(reply, after_message) FROM turns
        WHERE conversation = {CONVERSATION} AND id = ANY(%(turns)s::text[])
    UNION ALL SELECT turn, NULL {FROM} AND is_copy = 1 AND turn = ANY(%(turns)s::text[])
"""
INSERT = f"""
    INSERT INTO changes (conversation, {COLUMNS}, patch)
    VALUES (%(conversation)s, %(v0)s, %(v1)s, %(v2)s, %(v3)s, %(v4)s, %(v5)s, %(v6)s, %(v7)s)
"""


class NewChanges:
    """Records that are about to be added to a locked conversation."""

    def __init__(self, place: Place, records: Iterable[ChangeRecord], numbers: Iterable[int] = ()) -> None:
        """Ask for what must be known of them; `numbers` are those whose records matter."""
        self._place = place
        self._turns = place.ask(TURNS, turns=[record.turn_id for record in records])
        self._highest = place.ask(HIGHEST)
        self._taken = place.ask(f"{SELECT_WITHOUT_PATCH} AND sequence = ANY(%(numbers)s::bigint[])", numbers=[*numbers])
        self._ends: dict[str, int | None] | None = None
        self._rows: dict[int, Row] = {}
        self._last = self._finished = 0

    def add(self, record: ChangeRecord, *, is_copy: bool = False) -> ChangeRecord:
        """Add a record under the next number, or under its own if it is a copy, and return it as it is stored."""
        self._check(record, is_copy=is_copy)
        number = record.number if is_copy else self._last + 1
        if is_copy:
            check_free(number, is_taken=number in self._rows)
        stored = as_stored(record if is_copy else after_its_reply(record, self._end_of(record)), number)
        self._insert(stored, is_copy=is_copy)
        self._last = max(self._last, number)
        self._rows[number] = ()
        return stored

    def finish(self, number: int, record: ChangeRecord) -> ChangeRecord:
        """Put a record that is done in the place of one that was begun, or raise StoreConflict."""
        self._read()
        row = self._rows.get(number)
        check_finishes(None if row is None else read(row, has_patch=False), number, record)
        self._check(record, is_copy=False)
        stored = as_stored(after_its_reply(record, self._end_of(record)), number)
        deletion = f"DELETE {FROM} AND sequence = %(number)s"
        self._place.ask(deletion, number=number)
        self._insert(stored, is_copy=False)
        return stored

    def _read(self) -> dict[str, int | None]:
        if self._ends is None:
            self._ends = {}
            for turn_id, end in self._place.read(self._turns):
                self._ends.setdefault(turn_id, end)
            self._last, self._finished = self._highest.fetchone() or (0, 0)
            self._rows = {row[0]: row for row in self._taken}
        return self._ends

    def _end_of(self, record: ChangeRecord) -> int | None:
        return self._read().get(record.turn_id)

    def _check(self, record: ChangeRecord, *, is_copy: bool) -> None:
        has_turn = is_copy or not needs_turn(record) or record.turn_id in self._read()
        check(record, self._place.found().messages, is_copy=is_copy, has_turn=has_turn)
        self._read()

    def _insert(self, record: ChangeRecord, *, is_copy: bool) -> None:
        values = values_of(record, self._finished + 1, is_copy=is_copy)
        self._finished += record.state == "done"
        named = {f"v{place}": value for place, value in enumerate(values)}
        self._place.ask(INSERT, conversation=self._place.found().number, **named)


def find(place: Place, number: int) -> ChangeRecord | None:
    """Return the record with a number."""
    return _first(place.ask(f"{SELECT} AND sequence = %(number)s", number=number), place)


def between(place: Place, first: int, last: int, *, patches: bool) -> list[ChangeRecord]:
    """Return the changes after these messages, in their order, and those that are only begun at the end of each."""
    query = f"{SELECT if patches else SELECT_WITHOUT_PATCH} {BETWEEN} {ORDER}"
    return [read(row, has_patch=patches) for row in place.all(query, first=first, last=last)]


def of_turns(place: Place, turn_ids: Sequence[str], first: int, last: int, *, patches: bool) -> list[ChangeRecord]:
    """Return those of some turns."""
    query = f"{SELECT if patches else SELECT_WITHOUT_PATCH} {OF_TURNS} {BETWEEN} {ORDER}"
    rows = place.all(query, turns=list(turn_ids), first=first, last=last)
    return [read(row, has_patch=patches) for row in rows]


def last_of(place: Place, folder: str) -> ChangeRecord | None:
    """Return the record of a folder that was done last in this conversation itself."""
    return _first(place.ask(f"{SELECT} {LAST_OF_FOLDER}", folder=folder), place)


def begun(place: Place) -> list[ChangeRecord]:
    """Return what was begun and is not done, oldest first."""
    return [read(row) for row in place.all(f"{SELECT} {BEGUN}")]


def _first(answer: Cursor[Row], place: Place) -> ChangeRecord | None:
    return next(map(read, place.read(answer)), None)
