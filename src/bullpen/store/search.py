"""The search index: filled some messages at a time. It finds candidates, which are then read and compared."""

import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from sqlite3 import SQLITE_READONLY, Connection, OperationalError
from typing import Any

from msgspec import Struct

from bullpen.store.base import Found
from bullpen.store.message_rows import speaker_from
from bullpen.store.packing import unpacked_text
from bullpen.text.patterns import pattern

# Scripts without spaces between words: Thai to Khmer, then kana, ideographs, Hangul, and their newer blocks.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u312f\u3131-\u318e\u31a0-\u31ff"
UNSPACED += "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
SYMBOLS = "\u2190-\u2bff\U0001f000-\U0001faff"

_UNSPACED_RUN = f"[{UNSPACED}]+"
_OTHER_RUN = rf"[^\W_{UNSPACED}]+|[{SYMBOLS}]"
_UNSPACED = pattern(_UNSPACED_RUN)
_OTHERS = pattern(_OTHER_RUN)
_ANY = pattern(f"{_UNSPACED_RUN}|{_OTHER_RUN}")
# Accents, but not the marks of kana and other scripts, which make a different letter.
_ACCENTS = pattern("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
_PARTS = pattern(r'"([^"]+)"|([^\s"]+)')

# Hashes and encoded data are long; their start is enough to find them.
LONGEST_WORD = 40
# More would only slow the index down: candidates are compared with the whole query anyway.
MOST_TERMS = 32

SNIPPET_BEFORE, SNIPPET_CHARACTERS = 30, 120


class Term(Struct, frozen=True):
    """A word that a message must contain, or the beginning of one."""

    text: str
    is_beginning: bool

    def is_in(self, words: set[str]) -> bool:
        """Return whether these words include it."""
        return self.text in words or (self.is_beginning and any(word.startswith(self.text) for word in words))


class Query(Struct, frozen=True):
    """What a person searches for."""

    terms: tuple[Term, ...]
    """For the index."""
    parts: tuple[str, ...]
    """What the folded text must contain exactly."""


def words_of(text: str) -> set[str]:
    """Return the words that find a text."""
    text = folded(text)
    found = {word[:LONGEST_WORD] for word in _OTHERS.findall(text)}
    for run in () if text.isascii() else _UNSPACED.findall(text):
        # The last character is also a word, so that every character begins one.
        found.update(map("".join, pairwise(run)), run[-1])
    return found


def query_from(text: str) -> Query | None:
    """Return the query that a person wrote, or None if there is nothing to search for."""
    written = (_on_one_line(quoted or plain) for quoted, plain in _PARTS.findall(folded(text)))
    parts = [part for part in map(_core, written) if part]
    terms = list(dict.fromkeys(term for part in parts for term in _terms(part)))
    return Query(tuple(terms[:MOST_TERMS]), tuple(parts)) if terms else None


def snippet(content: str, query: Query) -> str | None:
    """Return the text around the first part of a query, or None if a part is missing."""
    text = _on_one_line(folded(content))
    places = [text.find(part) for part in query.parts]
    if -1 in places:
        return None
    # Folding may have changed the length; a snippet need not start at an exact position.
    start = max(0, min(places) * len(content) // len(text) - SNIPPET_BEFORE)
    end = start + SNIPPET_CHARACTERS
    return f"{'…' if start else ''}{_on_one_line(content[start:end])}{'…' if end < len(content) else ''}"


def folded(text: str) -> str:
    """Return a text without differences that a search ignores: "Café", "CAFE" and "ｃａｆｅ" become "cafe"."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold()))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _core(part: str) -> str:
    """Return the part of a query from its first to its last indexed character."""
    runs = list(_ANY.finditer(part))
    return part[runs[0].start() : runs[-1].end()] if runs else ""


def _terms(part: str) -> Iterator[Term]:
    for run in _ANY.finditer(part):
        text = run[0]
        is_unspaced = _UNSPACED.match(text) is not None
        if is_unspaced and len(text) > 1:
            yield from (Term("".join(pair), is_beginning=False) for pair in pairwise(text))
        else:
            yield Term(text[:LONGEST_WORD], is_beginning=is_unspaced or run.end() == len(part))


# How many messages are indexed together: each time costs about as much as storing a message.
# A search reads those that are not indexed yet one by one.
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
    """Index the messages that are not indexed yet, whenever MOST_WAITING more have been stored."""
    if newest % MOST_WAITING:
        return
    query = "SELECT number, content FROM messages WHERE number > (SELECT number FROM indexed)"
    for number, content in db.execute(query):
        db.execute("INSERT INTO said (rowid, words) VALUES (?, ?)", (number, _joined_words(content)))
    db.execute("UPDATE indexed SET number = ?", (newest,))


def remove(db: Connection, conversation: int) -> None:
    """Remove the words of a conversation from the index completely."""
    query = "SELECT number, content FROM messages WHERE conversation = ? AND number <= (SELECT number FROM indexed)"
    for number, content in db.execute(query, (conversation,)):
        values = (number, _joined_words(content))
        db.execute("INSERT INTO said (said, rowid, words) VALUES ('delete', ?, ?)", values)
    db.execute("INSERT INTO said (said) VALUES ('optimize')")
    # SQLite will reuse the numbers after the last remaining message.
    query = "SELECT number FROM messages WHERE conversation <> ? ORDER BY number DESC LIMIT 1"
    (last,) = db.execute(query, (conversation,)).fetchone() or (0,)
    db.execute("UPDATE indexed SET number = min(number, ?)", (last,))


def check(db: Connection) -> None:
    """Raise sqlite3.DatabaseError if the index is damaged. Waits for writers, and blocks them while it runs."""
    try:
        db.execute("INSERT INTO said (said) VALUES ('integrity-check')")
    except OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != SQLITE_READONLY:
            raise
        _check_copy(db)


def _check_copy(db: Connection) -> None:
    """Check a copy of the index, since SQLite checks only one that can be written."""
    db.execute("DROP TABLE IF EXISTS temp.copied")
    ((definition,),) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'said'")
    db.execute(definition.replace("said", "temp.copied", 1))
    for table in ("data", "idx", "config"):
        db.execute(f"DELETE FROM temp.copied_{table}")  # noqa: S608
        db.execute(f"INSERT INTO temp.copied_{table} SELECT * FROM main.said_{table}")  # noqa: S608
    db.execute("INSERT INTO temp.copied (copied) VALUES ('integrity-check')")
    db.execute("DROP TABLE temp.copied")


def found(db: Connection, query: Query, conversation: int | None) -> Iterator[Found]:
    """Yield the messages that a query finds, newest first."""
    values = {"match": " ".join(map(_quoted, query.terms)), "conversation": conversation}
    for row in db.execute(WAITING, values):
        match = match_in(row, query)
        if match and has_terms(unpacked_text(row[-1]), query):
            yield match
    yield from filter(None, (match_in(row, query) for row in db.execute(INDEXED, values)))


def match_in(row: tuple[Any, ...], query: Query) -> Found | None:
    """Return the message in a row if it contains all parts of the query."""
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


def has_terms(content: str, query: Query) -> bool:
    """Return whether a message has all words of a query."""
    words = words_of(content)
    return all(term.is_in(words) for term in query.terms)


def _joined_words(content: object) -> str:
    return " ".join(words_of(unpacked_text(content)))


def _quoted(term: Term) -> str:
    return f'"{term.text}" *' if term.is_beginning else f'"{term.text}"'
