"""The index of words: filled some messages at a time, asked for candidates, which are then read and compared."""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

from bullpen.store.base import Found
from bullpen.store.message_rows import speaker_from
from bullpen.store.packing import unpacked_text
from bullpen.store.terms import Query, Term, snippet, words_of

# How many messages are put into the index together: each time costs about as much as storing a message.
# A search reads those that wait one by one.
MOST_WAITING = 64

WAITING = """
    SELECT conversations.id, messages.id, sequence, speakers.speaker, timestamp, content
    FROM messages
        JOIN speakers ON speakers.number = messages.speaker
        JOIN conversations ON conversations.number = messages.conversation
    WHERE messages.number > (SELECT number FROM indexed)
        AND (:conversation IS NULL OR messages.conversation = :conversation)
    ORDER BY messages.number DESC
"""
# The index comes first, so that its order, newest first, is that of the result.
INDEXED = """
    SELECT conversations.id, messages.id, sequence, speakers.speaker, timestamp, content
    FROM said
        CROSS JOIN messages ON messages.number = said.rowid
        JOIN speakers ON speakers.number = messages.speaker
        JOIN conversations ON conversations.number = messages.conversation
    WHERE said MATCH :match
        AND (:conversation IS NULL OR messages.conversation = :conversation)
    ORDER BY said.rowid DESC
"""


def add(db: Connection, newest: int) -> None:
    """Put the messages that wait into the index, whenever that many more have been stored."""
    if newest % MOST_WAITING:
        return
    query = "SELECT number, content FROM messages WHERE number > (SELECT number FROM indexed)"
    for number, content in db.execute(query):
        db.execute("INSERT INTO said (rowid, words) VALUES (?, ?)", (number, _joined_words(content)))
    db.execute("UPDATE indexed SET number = ?", (newest,))


def remove(db: Connection, conversation: int) -> None:
    """Take the words of a conversation out of the index, so that they are not even hidden in it."""
    query = "SELECT number, content FROM messages WHERE conversation = ? AND number <= (SELECT number FROM indexed)"
    for number, content in db.execute(query, (conversation,)):
        values = (number, _joined_words(content))
        db.execute("INSERT INTO said (said, rowid, words) VALUES ('delete', ?, ?)", values)
    db.execute("INSERT INTO said (said) VALUES ('optimize')")
    # SQLite will give the numbers behind the last message that stays to others.
    query = "SELECT number FROM messages WHERE conversation <> ? ORDER BY number DESC LIMIT 1"
    (last,) = db.execute(query, (conversation,)).fetchone() or (0,)
    db.execute("UPDATE indexed SET number = min(number, ?)", (last,))


def found(db: Connection, query: Query, conversation: int | None) -> Iterator[Found]:
    """Yield the messages that a query finds, newest first."""
    values = {"match": " ".join(map(_quoted, query.terms)), "conversation": conversation}
    for row in db.execute(WAITING, values):
        match = _match(row, query)
        if match and _has_terms(unpacked_text(row[-1]), query):
            yield match
    yield from filter(None, (_match(row, query) for row in db.execute(INDEXED, values)))


def _match(row: tuple[Any, ...], query: Query) -> Found | None:
    """Return the message in a row if all parts of the query stand in it."""
    conversation_id, message_id, sequence, speaker, timestamp, content = row
    shown = snippet(unpacked_text(content), query)
    if shown is None:
        return None
    return Found(
        conversation_id=conversation_id,
        message_id=message_id,
        sequence=sequence,
        speaker=speaker_from(speaker),
        timestamp=timestamp,
        snippet=shown,
    )


def _has_terms(content: str, query: Query) -> bool:
    words = words_of(content)
    return all(term.is_in(words) for term in query.terms)


def _joined_words(content: object) -> str:
    return " ".join(words_of(unpacked_text(content)))


def _quoted(term: Term) -> str:
    return f'"{term.text}" *' if term.is_beginning else f'"{term.text}"'
