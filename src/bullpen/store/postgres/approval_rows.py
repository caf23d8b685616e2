"""What agents ask before they do something, and what is answered, as rows in a chain of hashes that only grows."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from bullpen.approvals import ApprovalRecord
from bullpen.errors import UnknownTurn
from bullpen.store.approval_rows import COLUMNS, IN_CHAIN, Problem, check, is_open, linked, problems_in, read, values_of
from bullpen.store.postgres.connections import Row
from bullpen.store.postgres.place import CONVERSATION, Place

PAGE = 500
"""Rows that are read at once."""
FROM = f"FROM approvals WHERE conversation = {CONVERSATION}"
SELECT = f"SELECT {COLUMNS} {FROM}"
BETWEEN = "AND after_message BETWEEN %(first)s AND %(last)s"
RUNNING_TURNS = f"SELECT id FROM turns WHERE conversation = {CONVERSATION} AND ended_at IS NULL AND state = 'running'"
OPEN = f"{SELECT} AND is_open = 1 AND turn IN ({RUNNING_TURNS}) ORDER BY sequence"
END = f"""
    SELECT approvals, approvals_head, first_link, coalesce((SELECT after_message FROM approvals
        WHERE approvals.conversation = states.conversation AND sequence = states.approvals), 0) FROM states
    JOIN conversations ON conversations.number = states.conversation WHERE conversation = {CONVERSATION}
"""
TURNS = f"SELECT id FROM turns WHERE conversation = {CONVERSATION} AND id = ANY(%(turns)s::text[])"
THERE = f"""
    SELECT turn, question, is_answer {FROM}
    AND turn = ANY(%(turns)s::text[]) AND question = ANY(%(questions)s::text[])
"""
HASHES = f"""
    SELECT sequence, hash FROM messages WHERE conversation = {CONVERSATION} AND sequence = ANY(%(sequences)s::bigint[])
"""
CLOSE = f"""
    UPDATE approvals SET is_open = 0 WHERE conversation = {CONVERSATION}
    AND turn = %(turn)s AND question = %(question)s AND is_answer = 0
"""
INSERT = f"""
    INSERT INTO approvals (conversation, {COLUMNS}, is_open)
    VALUES (%(conversation)s, %(v0)s, %(v1)s, %(v2)s, %(v3)s, %(v4)s, %(v5)s, %(v6)s, %(is_open)s)
"""
UPDATE = "UPDATE states SET approvals = %(number)s, approvals_head = %(hash)s WHERE conversation = %(conversation)s"
CHAIN = f"""
    SELECT approvals.sequence, {IN_CHAIN} {FROM} AND sequence > %(after)s ORDER BY sequence LIMIT {PAGE}
"""


class NewApprovals:
    """Questions and answers that are about to be added to a locked conversation."""

    def __init__(self, place: Place, records: Sequence[ApprovalRecord]) -> None:
        self._place = place
        turns = list({record.turn_id for record in records})
        questions = list({record.question for record in records})
        self._turns = place.ask(TURNS, turns=turns)
        self._asked = place.ask(THERE, turns=turns, questions=questions)
        self._links = place.ask(HASHES, sequences=sorted({record.after_message for record in records}))
        self._end = place.ask(END)
        self._is_read = False

    def add(self, record: ApprovalRecord) -> ApprovalRecord:
        """Add a question or an answer of a turn here after the last one, and return it as it is stored."""
        self._read()
        if record.turn_id not in self._turn_ids:
            raise UnknownTurn(record.turn_id)
        messages = self._place.found().messages
        return self._add(replace(record, number=0, after_message=messages, is_copy=False))

    def copy(self, record: ApprovalRecord) -> None:
        """Add what was asked or answered in another conversation, under its own number."""
        self._read()
        self._add(replace(record, is_copy=True))

    def _read(self) -> None:
        if self._is_read:
            return
        found = self._place.found()
        self._turn_ids = {turn_id for (turn_id,) in self._place.read(self._turns)}
        self._there: dict[tuple[str, str], set[int]] = {}
        for turn_id, question, is_answer in self._place.read(self._asked):
            self._there.setdefault((turn_id, question), set()).add(is_answer)
        self._hashes: dict[int, bytes] = {**dict(self._place.read(self._links)), found.messages: found.head}
        ((self._count, head, first, self._latest),) = self._place.read(self._end)
        self._hashes[0], self._head = first, first if head is None else head
        self._is_read = True

    def _add(self, record: ApprovalRecord) -> ApprovalRecord:
        there = self._there.setdefault((record.turn_id, record.question), set())
        found = self._place.found()
        check(record, self._count, there, self._latest, found.messages)
        numbered = replace(record, number=self._count + 1)
        stored, line = linked(numbered, self._head, self._hashes[record.after_message])
        if stored.answer is not None:
            self._place.ask(CLOSE, turn=stored.turn_id, question=stored.question)
        named = {f"v{place}": value for place, value in enumerate(values_of(stored, line))}
        self._place.ask(INSERT, conversation=found.number, is_open=is_open(stored), **named)
        self._place.ask(UPDATE, conversation=found.number, number=stored.number, hash=stored.hash)
        there.add(int(stored.answer is not None))
        self._count, self._head, self._latest = stored.number, stored.hash, stored.after_message
        return stored


def between(place: Place, first: int, last: int) -> list[ApprovalRecord]:
    """Return what was asked and answered after these messages, in its order."""
    return [read(row) for row in place.all(f"{SELECT} {BETWEEN} ORDER BY sequence", first=first, last=last)]


def of_turns(place: Place, turn_ids: Sequence[str], first: int, last: int) -> list[ApprovalRecord]:
    """Return what was asked and answered in some turns."""
    query = f"{SELECT} AND turn = ANY(%(turns)s::text[]) {BETWEEN} ORDER BY sequence"
    return [read(row) for row in place.all(query, turns=list(turn_ids), first=first, last=last)]


def open_in(place: Place) -> list[ApprovalRecord]:
    """Return the questions of running turns that have no answer, oldest first."""
    return [read(row) for row in place.all(OPEN)]


def problems(place: Place) -> Iterator[Problem]:
    """Yield which questions and answers have changed, are missing, or say what cannot be."""
    yield from problems_in(_chain(place), place.ask(END).fetchone())


def _chain(place: Place) -> Iterator[Row]:
    after = 0
    while rows := place.ask(CHAIN, after=after).fetchall():
        yield from (row[1:] for row in rows)
        after = rows[-1][0]
