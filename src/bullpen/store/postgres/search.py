"""Search: our own words of each message in a tsvector, so that Chinese is found without an extension of PostgreSQL."""

from collections.abc import Iterator

from bullpen.store.base import Found
from bullpen.store.postgres.connections import Db, Row
from bullpen.store.search import Query, Term, has_terms, match_in, words_of

MOST_BYTES = 500_000
"""Of the words of one message. A tsvector holds a megabyte; a message with more is compared in every search."""
PAGE = 200

FOUND = """
    SELECT messages.number, conversations.id, messages.id, sequence, speakers.speaker, timestamp, content,
        words IS NULL
    FROM messages
        JOIN speakers ON speakers.number = messages.speaker
        JOIN conversations ON conversations.number = messages.conversation
    WHERE (words @@ %(words)s::tsquery OR words IS NULL) AND messages.number < %(before)s
        AND (%(conversation)s::bigint IS NULL OR messages.conversation = %(conversation)s)
    ORDER BY messages.number DESC LIMIT %(limit)s
"""


def words_column(content: str) -> list[str] | None:
    """Return the words of a message as they are stored; None if there are too many."""
    words = words_of(content)
    return sorted(words) if sum(len(word.encode()) + 8 for word in words) <= MOST_BYTES else None


def found(db: Db, query: Query, conversation: int | None) -> Iterator[Found]:
    """Yield the messages that a query finds, newest first."""
    words = " & ".join(map(_quoted, query.terms))
    before = 2**62
    while rows := _page(db, words, conversation, before):
        for number, *row, content, is_not_indexed in rows:
            before, text = number, content.decode()
            match = match_in((*row, text), query)
            if match and (not is_not_indexed or has_terms(text, query)):
                yield match


def _page(db: Db, words: str, conversation: int | None, before: int) -> list[Row]:
    values = {"words": words, "conversation": conversation, "before": before, "limit": PAGE}
    return db.execute(FOUND, values, binary=True).fetchall()


def _quoted(term: Term) -> str:
    text = term.text.replace("\\", "\\\\").replace("'", "''")
    return f"'{text}':*" if term.is_beginning else f"'{text}'"
