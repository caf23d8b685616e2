"""Conversations of PostgreSQL's store, copied from it and to it."""

from collections.abc import Iterator
from itertools import chain

from bullpen.errors import ConversationExists, MessageDiffers
from bullpen.store.base import StoredMessage
from bullpen.store.message_rows import NO_END
from bullpen.store.postgres import approval_rows, message_rows
from bullpen.store.postgres.connections import Db
from bullpen.store.postgres.place import Place
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

PAGE = 500
"""Rows that are read or written at once."""
TURN = "(SELECT number FROM turns WHERE id = %s AND conversation = %s)"


def copied(place: Place) -> Copied:
    """Return a conversation to be read while the transaction lasts."""
    columns = ", ".join((*CONVERSATION, *STATE))
    (row,) = place.all(f"SELECT {columns} FROM conversations JOIN states ON conversation = number WHERE id = %(id)s")
    return Copied(
        row[: len(CONVERSATION)],
        row[len(CONVERSATION) :],
        _messages(place),
        lambda table: _rows(place, table),
    )


def add(db: Db, given: Copied) -> None:
    """Add a conversation, and compare it with what is read back."""
    digest = Digest()
    new = digest.seen(given)
    marks = ", ".join(["%s"] * len(CONVERSATION))
    created = db.execute(
        f"INSERT INTO conversations ({', '.join(CONVERSATION)}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        " RETURNING number",
        new.conversation,
    ).fetchone()
    if created is None:
        raise ConversationExists(new.id)
    columns = ("conversation", "head", *STATE)
    db.execute(
        f"INSERT INTO states ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})",
        (created[0], new.first_link, *new.state),
    )
    place = Place(db, new.id, to_write=True)
    _add_messages(place, new)
    for table in TABLES:
        _add_rows(place, table, iter(new.rows(table)))
    check_approvals(approval_rows.problems(place))
    check_read_back(copied(Place(db, new.id)), digest)


def _add_messages(place: Place, new: Copied) -> None:
    added = message_rows.NewMessages(place, [])
    sequence, head = 0, place.found().first_link
    for stored in new.messages:
        link = added.add(head, sequence + 1, stored.message)
        if link is None or (stored.sequence, stored.hash) != (sequence + 1, link):
            raise MessageDiffers(stored.message.id)
        sequence, head = sequence + 1, link
        if sequence % PAGE == 0:
            _wait(place)
    update = "UPDATE states SET messages = %(messages)s, head = %(head)s WHERE conversation = %(number)s"
    place.ask(update, messages=sequence, head=head, number=place.found().number)


def _add_rows(place: Place, table: Table, rows: Iterator[Row]) -> None:
    statement, number = insert(table, "%s", turn=TURN), place.found().number
    for count, row in enumerate(rows, start=1):
        values = chain.from_iterable(
            (value, number) if name in table.turns else (value,) for name, value in zip(table.columns, row, strict=True)
        )
        place.db.execute(statement, [*(() if table.belongs_to_turn else (number,)), *values])
        if count % PAGE == 0:
            _wait(place)


def _messages(place: Place) -> Iterator[StoredMessage]:
    after = 0
    while page := message_rows.first_of(place, after, NO_END, PAGE):
        yield from page
        after = page[-1].sequence


def _rows(place: Place, table: Table) -> Iterator[Row]:
    """Yield the rows of a table, some at a time."""
    name = f"copied_{table.name}"
    place.db.execute(f"DECLARE {name} CURSOR FOR {select(table, str(place.found().number))}")
    while page := place.db.execute(f"FETCH {PAGE} FROM {name}", binary=True).fetchall():
        yield from page
    place.db.execute(f"CLOSE {name}")


def _wait(place: Place) -> None:
    """Let the server catch up, so that what it has not done yet does not fill the memory."""
    place.db.execute("SELECT 1").fetchone()
