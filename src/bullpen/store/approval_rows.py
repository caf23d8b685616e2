"""What agents ask before they do something, and what is answered, as rows in a chain of hashes that only grows.

The columns repeat what queries look for. They are compared with the packed record when it is read, so that a row in
which only one of them was changed is noticed; fsck recomputes the chain.
"""

from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection

import msgspec
from msgspec.structs import replace

from bullpen.approvals import ApprovalRecord
from bullpen.errors import StoreConflict, UnknownTurn
from bullpen.store.base import FindingKind
from bullpen.store.chain import approval_line, next_approval_link
from bullpen.store.packing import DamagedData, packed, unpacked

COLUMNS = "sequence, turn, question, is_answer, after_message, record, hash"
SELECT = f"SELECT {COLUMNS} FROM approvals WHERE conversation = ?1"  # noqa: S608
OF_TURNS = "AND turn IN (SELECT value FROM json_each(?2)) AND +after_message BETWEEN ?3 AND ?4"
BETWEEN = "AND after_message BETWEEN ?2 AND ?3"
# With the plus sign, SQLite uses the index of what is looked for, and not one that is in this order already.
ORDER = "ORDER BY +sequence"
RUNNING_TURNS = "SELECT id FROM turns WHERE conversation = ?1 AND ended_at IS NULL AND state = 'running'"
OPEN = f"AND is_open = 1 AND +turn IN ({RUNNING_TURNS}) ORDER BY +sequence"
IN_CHAIN = f"""
    is_open, EXISTS (SELECT 1 FROM turns WHERE turns.conversation = approvals.conversation AND id = turn),
    (SELECT messages.hash FROM messages
        WHERE messages.conversation = approvals.conversation AND messages.sequence = approvals.after_message),
    {COLUMNS}
"""  # noqa: S608
"""What problems_in reads, of any store."""
END = """
    SELECT approvals, approvals_head, first_link, coalesce((SELECT after_message FROM approvals
        WHERE approvals.conversation = states.conversation AND sequence = states.approvals), 0) FROM states
    JOIN conversations ON conversations.number = states.conversation WHERE conversation = ?
"""

Row = tuple[object, ...]
Problem = tuple[FindingKind, str]

_decoder = msgspec.json.Decoder(ApprovalRecord)


def add(db: Connection, conversation: int, messages: int, record: ApprovalRecord) -> ApprovalRecord:
    """Add a question or an answer of a turn here after the last one, and return it as it is stored."""
    if not _has_turn(db, conversation, record.turn_id):
        raise UnknownTurn(record.turn_id)
    return _add(db, conversation, messages, replace(record, number=0, after_message=messages, is_copy=False))


def copy(db: Connection, conversation: int, messages: int, record: ApprovalRecord) -> None:
    """Add what was asked or answered in another conversation, under its own number."""
    _add(db, conversation, messages, replace(record, is_copy=True))


def _add(db: Connection, conversation: int, messages: int, record: ApprovalRecord) -> ApprovalRecord:
    count, head, first, latest = db.execute(END, (conversation,)).fetchone()
    query = "SELECT is_answer FROM approvals WHERE conversation = ? AND turn = ? AND question = ?"
    there = {is_answer for (is_answer,) in db.execute(query, (conversation, record.turn_id, record.question))}
    check(record, count, there, latest, messages)
    link = first if record.after_message == 0 else _message_hash(db, conversation, record.after_message)
    stored, line = linked(replace(record, number=count + 1), first if head is None else head, link)
    if stored.answer is not None:
        close = (
            "UPDATE approvals SET is_open = 0 WHERE conversation = ? AND turn = ? AND question = ? AND is_answer = 0"
        )
        db.execute(close, (conversation, stored.turn_id, stored.question))
    db.execute(
        f"INSERT INTO approvals (conversation, {COLUMNS}, is_open) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (conversation, *values_of(stored, line), is_open(stored)),
    )
    update = "UPDATE states SET approvals = ?, approvals_head = ? WHERE conversation = ?"
    db.execute(update, (stored.number, stored.hash, conversation))
    return stored


def between(db: Connection, conversation: int, first: int, last: int) -> list[ApprovalRecord]:
    """Return what was asked and answered after these messages, in its order."""
    return [read(row) for row in db.execute(f"{SELECT} {BETWEEN} {ORDER}", (conversation, first, last))]


def of_turns(db: Connection, conversation: int, turn_ids: Sequence[str], first: int, last: int) -> list[ApprovalRecord]:
    """Return what was asked and answered in some turns, without a look at others."""
    values = (conversation, msgspec.json.encode(turn_ids).decode(), first, last)
    return [read(row) for row in db.execute(f"{SELECT} {OF_TURNS} {ORDER}", values)]


def open_in(db: Connection, conversation: int) -> list[ApprovalRecord]:
    """Return the questions of running turns that have no answer, oldest first."""
    return [read(row) for row in db.execute(f"{SELECT} {OPEN}", (conversation,))]


def read(row: Row) -> ApprovalRecord:
    """Return the question or the answer in a row, or raise DamagedData."""
    *columns, blob, link = row
    try:
        record = _decoder.decode(unpacked(blob))
    except msgspec.MsgspecError as error:
        raise DamagedData(f"an approval cannot be read: {error}") from error
    if _columns(record) != tuple(columns) or not isinstance(link, bytes):
        raise DamagedData(f"approval number {record.number} is not the one that its row is about")
    return replace(record, hash=link)


def problems(db: Connection, conversation: int) -> Iterator[Problem]:
    """Yield which questions and answers have changed, are missing, or say what cannot be."""
    query = f"SELECT {IN_CHAIN} FROM approvals WHERE conversation = ? ORDER BY sequence"  # noqa: S608
    yield from problems_in(db.execute(query, (conversation,)), db.execute(END, (conversation,)).fetchone())


def problems_in(rows: Iterable[Row], end: Row | None) -> Iterator[Problem]:
    """Yield the same about rows of IN_CHAIN, and of END."""
    # A conversation without a state is reported with its messages.
    count, head, first, _ = end or (0, None, b"", 0)
    last, previous = 0, first
    # The numbers of questions without an answer, and of those that are noted as such.
    unanswered: dict[tuple[str, str], int] = {}
    noted: set[object] = set()
    is_readable = True
    for is_open_now, has_turn, message, *row in rows:
        number, link = row[0], row[-1]
        try:
            record = read(tuple(row))
        except DamagedData as error:
            is_readable = False
            yield "record", f"approval number {number} cannot be read: {error}"
        else:
            yield from _problems_of(record, last, previous, first if record.after_message == 0 else message)
            if not record.is_copy and not has_turn:
                yield "turn", f"approval number {number} is of turn {record.turn_id!r}, which does not exist"
            if is_open(record):
                unanswered[record.turn_id, record.question] = record.number
            elif record.answer is not None:
                unanswered.pop((record.turn_id, record.question), None)
        if is_open_now:
            noted.add(number)
        last, previous = (number if isinstance(number, int) else last + 1), link
    if end is not None and (last, previous if last else None) != (count, head):
        yield "missing", f"its last approval is number {last}, not {count}"
    elif is_readable and noted != set(unanswered.values()):
        yield "record", "its questions without an answer are not those that are noted as open"


def _problems_of(record: ApprovalRecord, last: int, previous: object, message: object) -> Iterator[Problem]:
    number = record.number
    if number != last + 1:
        yield "missing", f"approvals before number {number} are missing"
    elif not isinstance(message, bytes):
        yield "turn", f"approval number {number} came after message {record.after_message}, which does not exist"
    elif record.hash != next_approval_link(
        previous if isinstance(previous, bytes) else b"", message, approval_line(record)
    ):
        yield "changed", f"approval number {number} has changed since it was stored: its hash does not match"


def check(record: ApprovalRecord, count: int, there: set[int], latest: int, messages: int) -> None:
    """Raise an error for what cannot be stored after this many others.

    `there` says whether its question (0) and its answer (1) are stored; `latest` is after which message the last came.
    """
    if (record.asked is None) == (record.answer is None):
        raise ValueError("An approval is either a question or an answer.")
    what = f"question {record.question!r} of turn {record.turn_id!r}"
    if record.is_copy and record.number != count + 1:
        raise StoreConflict(f"An approval cannot be copied to number {record.number}. Nothing was stored.")
    if not latest <= record.after_message <= messages:
        raise ValueError(f"An approval cannot come after message {record.after_message} of {messages} here.")
    if record.asked is not None and there:
        raise StoreConflict(f"The {what} is stored already. Nothing was stored.")
    if record.answer is not None and 0 not in there:
        raise StoreConflict(f"The {what} was not asked, so it cannot be answered. Nothing was stored.")
    if record.answer is not None and 1 in there:
        raise StoreConflict(f"The {what} is answered already, and the first answer counts. Nothing was stored.")


def linked(record: ApprovalRecord, previous: bytes, message: bytes) -> tuple[ApprovalRecord, bytes]:
    """Return what is added to the chain with its hash, and the line that is hashed; or raise TypeError."""
    record = replace(record, hash=b"")
    try:
        # What is equal to a default is left out only if it was read: the line must be the same whenever it is made.
        same = _decoder.decode(approval_line(record))
    except (msgspec.MsgspecError, ValueError, OverflowError, TypeError) as error:
        raise TypeError(f"This approval cannot be stored: {error}.") from error
    if same != record:
        raise TypeError("This approval cannot be stored: it would not be the same when read again.")
    line = approval_line(same)
    return replace(same, hash=next_approval_link(previous, message, line)), line


def values_of(record: ApprovalRecord, line: bytes) -> Row:
    """Return what COLUMNS of a question or an answer are."""
    return (*_columns(record), packed(line), record.hash)


def is_open(record: ApprovalRecord) -> int:
    """Return whether a record that is just stored is a question that waits for an answer here."""
    return int(record.asked is not None and not record.is_copy)


def _columns(record: ApprovalRecord) -> Row:
    """Return what COLUMNS must be, up to the record itself."""
    return (record.number, record.turn_id, record.question, int(record.answer is not None), record.after_message)


def _has_turn(db: Connection, conversation: int, turn_id: str) -> bool:
    query = "SELECT 1 FROM turns WHERE conversation = ? AND id = ?"
    return db.execute(query, (conversation, turn_id)).fetchone() is not None


def _message_hash(db: Connection, conversation: int, sequence: int) -> bytes:
    query = "SELECT hash FROM messages WHERE conversation = ? AND sequence = ?"
    row = db.execute(query, (conversation, sequence)).fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise DamagedData(f"message number {sequence} has no hash")
    return row[0]
