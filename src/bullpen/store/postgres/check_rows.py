"""Runs of checks, as rows: added when they begin, finished once, and never changed after that."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from bullpen.check_results import CheckResult
from bullpen.store.check_rows import COLUMNS, check, check_finishes, check_free, read, values_of
from bullpen.store.postgres.connections import Row
from bullpen.store.postgres.place import CONVERSATION, Place

FROM = f"FROM checks WHERE conversation = {CONVERSATION}"
SELECT = f"SELECT {COLUMNS} {FROM}"
ORDER = "ORDER BY after_message, sequence"
BETWEEN = "AND after_message BETWEEN %(first)s AND %(last)s"
TURNS = f"""
    SELECT id, coalesce(reply, after_message) FROM turns
    WHERE conversation = {CONVERSATION} AND id = ANY(%(turns)s::text[])
"""
INSERT = f"""
    INSERT INTO checks (conversation, {COLUMNS})
    VALUES (%(conversation)s, %(v0)s, %(v1)s, %(v2)s, %(v3)s, %(v4)s, %(v5)s)
"""


class NewChecks:
    """Runs that are about to be added to a locked conversation, or to end."""

    def __init__(self, place: Place, results: Iterable[CheckResult]) -> None:
        self._place = place
        results = list(results)
        self._turns = place.ask(TURNS, turns=[result.turn_id for result in results])
        self._highest = place.ask(f"SELECT coalesce(max(sequence), 0) {FROM}")
        numbers = [result.number for result in results]
        self._taken = place.ask(f"{SELECT} AND sequence = ANY(%(numbers)s::bigint[])", numbers=numbers)
        self._ends: dict[str, int | None] | None = None
        self._rows: dict[int, Row] = {}
        self._last = 0

    def add(self, result: CheckResult, *, is_copy: bool = False) -> CheckResult:
        """Add a run under the next number, or under its own if it is a copy, and return it as it is stored."""
        self._check(result, is_copy=is_copy)
        number = result.number if is_copy else self._last + 1
        if is_copy:
            check_free(number, is_taken=number in self._rows)
        stored = replace(result if is_copy else self._after_its_reply(result), number=number)
        self._insert(stored, is_copy=is_copy)
        self._last = max(self._last, number)
        self._rows[number] = ()
        return stored

    def finish(self, result: CheckResult) -> CheckResult:
        """Put a run that has ended in the place of one that is running, or raise StoreConflict."""
        self._read()
        row = self._rows.get(result.number)
        check_finishes(None if row is None else read(row), result)
        self._check(result, is_copy=False)
        stored = self._after_its_reply(result)
        self._place.ask(f"DELETE {FROM} AND sequence = %(number)s", number=result.number)
        self._insert(stored, is_copy=False)
        return stored

    def _read(self) -> dict[str, int | None]:
        if self._ends is None:
            self._ends = dict(self._place.read(self._turns))
            (self._last,) = self._highest.fetchone() or (0,)
            self._rows = {row[0]: row for row in self._taken}
        return self._ends

    def _check(self, result: CheckResult, *, is_copy: bool) -> None:
        has_turn = result.turn_id in self._read() or is_copy
        check(result, self._place.found().messages, is_copy=is_copy, has_turn=has_turn)

    def _after_its_reply(self, result: CheckResult) -> CheckResult:
        end = self._read().get(result.turn_id)
        return result if end is None else replace(result, after_message=end)

    def _insert(self, result: CheckResult, *, is_copy: bool) -> None:
        named = {f"v{place}": value for place, value in enumerate(values_of(result, is_copy=is_copy))}
        self._place.ask(INSERT, conversation=self._place.found().number, **named)


def between(place: Place, first: int, last: int) -> list[CheckResult]:
    """Return the runs after these messages, in their order."""
    return [read(row) for row in place.all(f"{SELECT} {BETWEEN} {ORDER}", first=first, last=last)]


def of_turns(place: Place, turn_ids: Sequence[str], first: int, last: int) -> list[CheckResult]:
    """Return those after some turns."""
    query = f"{SELECT} AND turn = ANY(%(turns)s::text[]) {BETWEEN} {ORDER}"
    return [read(row) for row in place.all(query, turns=list(turn_ids), first=first, last=last)]


def running(place: Place) -> list[CheckResult]:
    """Return those that have not ended, oldest first."""
    return [read(row) for row in place.all(f"{SELECT} AND is_running = 1 ORDER BY sequence")]
