"""Conversations of SQLite's store, copied from it and to it."""

from collections.abc import Iterator
from itertools import chain
from sqlite3 import Connection

from bullpen.errors import ConversationExists, MessageDiffers
from bullpen.store import approval_rows, message_rows, search
from bullpen.store.base import StoredMessage
from bullpen.store.conversation_rows import place_of
from bullpen.store.transfer import (
    CONVERSATION,
    STATE,
    TABLES,
    Copied,
    Digest,
    Row,
    Table,
    check_approvals,
    check_read_back,
    insert,
    select,
)

TURN = "(SELECT number FROM turns WHERE id = ? AND conversation = ?)"


def copied(db: Connection, conversation_id: str) -> Copied:
    """Return a conversation to be read while the transaction lasts."""
    number = place_of(db, conversation_id).number
    columns = ", ".join((*CONVERSATION, *STATE))
    row = db.execute(
        f"SELECT {columns} FROM conversations JOIN states ON conversation = number WHERE number = ?",  # noqa: S608
        (number,),
    ).fetchone()
    return Copied(
        row[: len(CONVERSATION)],
        row[len(CONVERSATION) :],
        _messages(db, number),
        lambda table: db.execute(select(table, "?"), (number,)),
    )


def add(db: Connection, given: Copied) -> None:
    """Add a conversation, and compare it with what is read back."""
    digest = Digest()
    new = digest.seen(given)
    if db.execute("SELECT 1 FROM conversations WHERE id = ?", (new.id,)).fetchone():
        raise ConversationExists(new.id)
    marks = ", ".join("?" * len(CONVERSATION))
    number = db.execute(
        f"INSERT INTO conversations ({', '.join(CONVERSATION)}) VALUES ({marks})",  # noqa: S608
        new.conversation,
    ).lastrowid
    columns = ("conversation", "head", *STATE)
    db.execute(
        f"INSERT INTO states ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",  # noqa: S608
        (number, new.first_link, *new.state),
    )
    _add_messages(db, int(number or 0), new)
    for table in TABLES:
        _add_rows(db, int(number or 0), table, iter(new.rows(table)))
    check_approvals(approval_rows.problems(db, int(number or 0)))
    check_read_back(copied(db, new.id), digest)


def _add_messages(db: Connection, number: int, new: Copied) -> None:
    sequence, head = 0, new.first_link
    for stored in new.messages:
        row, link = message_rows.add(db, number, head, sequence + 1, stored.message)
        if row is None or (stored.sequence, stored.hash) != (sequence + 1, link):
            raise MessageDiffers(stored.message.id)
        search.add(db, newest=row)
        sequence, head = sequence + 1, link
    db.execute("UPDATE states SET messages = ?, head = ? WHERE conversation = ?", (sequence, head, number))


def _add_rows(db: Connection, number: int, table: Table, rows: Iterator[Row]) -> None:
    statement = insert(table, "?", turn=TURN)
    for row in rows:
        values = chain.from_iterable(
            (value, number) if name in table.turns else (value,) for name, value in zip(table.columns, row, strict=True)
        )
        db.execute(statement, (*(() if table.belongs_to_turn else (number,)), *values))


def _messages(db: Connection, number: int) -> Iterator[StoredMessage]:
    rows = db.execute(f"{message_rows.SELECT} TRUE ORDER BY sequence", (number,))
    return message_rows.checked(db, number, rows)
