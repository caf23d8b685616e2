"""Messages as rows: appending and reading them. Every message that is read is checked against its hash."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from sqlite3 import Connection
from typing import Any

import msgspec

from bullpen.context.history import Envelope, message_number
from bullpen.errors import MessageDiffers, UnknownMessage
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.base import StoredMessage
from bullpen.store.chain import next_link
from bullpen.store.packing import DamagedData, packed_text, unpacked_text

NO_END = 2**62

SELECT = """
    SELECT sequence, id, speakers.speaker, timestamp, routing, extra, content, hash
    FROM messages JOIN speakers ON speakers.number = messages.speaker WHERE messages.conversation = ? AND
"""

Row = tuple[Any, ...]
_TEXT_OR_NOTHING = (str, type(None))
_TYPES = {
    (int, str, str, int, routing, extra, content, bytes)
    for routing, extra, content in product(_TEXT_OR_NOTHING, _TEXT_OR_NOTHING, (str, bytes))
}

_routing_decoder = msgspec.json.Decoder(
    tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str | None, str | None]
)


def add(
    db: Connection, conversation: int, previous: bytes, sequence: int, message: ConversationMessage
) -> tuple[int | None, bytes]:
    """Store a message after another; return its number, or None if its id is already stored, and its hash."""
    link = next_link(previous, sequence, message)
    speaker, routing, extra = columns_of(message)
    content = packed_text(message.content)
    row = (conversation, sequence, message.id, _speaker_number(db, conversation, speaker))
    # The index refuses a second use of an id at no cost; a query first would cost something.
    cursor = db.execute(
        "INSERT INTO messages (conversation, sequence, id, speaker, timestamp, routing, extra, content, hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (conversation, id) DO NOTHING",
        (*row, message.timestamp, routing, extra, content, link),
    )
    return cursor.lastrowid if cursor.rowcount else None, link


def columns_of(message: ConversationMessage) -> tuple[str, str | None, str | None]:
    """Return speaker, routing and extra as they are stored, or raise TypeError for what could not be read again."""
    speaker, routing = msgspec.json.encode(message.speaker).decode(), _routing_text(message.routing)
    extra = None if message.extra is None else msgspec.json.encode(message.extra).decode()
    _check_readable(message, speaker, routing, extra)
    return speaker, routing, extra


def _check_readable(message: ConversationMessage, speaker: str, routing: str | None, extra: str | None) -> None:
    """Raise TypeError for a message that could be written but not read: an unknown type of speaker, for example."""
    types = [type(message.id), type(message.timestamp), type(message.content)]
    try:
        back = (speaker_from(speaker), _routing(routing), _extra(extra))
        is_unchanged = back == (message.speaker, message.routing, message.extra)
    except DamagedData as error:
        raise TypeError(f"This message cannot be stored: {error}.") from error
    if types != [str, int, str] or not is_unchanged:
        raise TypeError("This message cannot be stored: it would not be the same when read again.")


def stored_before(db: Connection, conversation: int, message: ConversationMessage) -> StoredMessage:
    """Return the message that is stored with this id, or raise MessageDiffers if it differs."""
    return stored_again(find(db, conversation, message.id), message)


def stored_again(stored: StoredMessage | None, message: ConversationMessage) -> StoredMessage:
    """Return what is stored under a message's id, or raise MessageDiffers if it is another message."""
    if stored is None:
        raise DamagedData(f"the speaker of message {message.id!r} is missing")
    if (stored.message.speaker, stored.message.content) != (message.speaker, message.content):
        raise MessageDiffers(message.id)
    return msgspec.structs.replace(stored, already_stored=True)


def find(db: Connection, conversation: int, message_id: str) -> StoredMessage | None:
    """Return the message with an id."""
    rows = db.execute(f"{SELECT} id = ?", (conversation, message_id))
    return next(checked(db, conversation, rows), None)


def sequence_of(db: Connection, conversation: int, message_id: str) -> int:
    """Return the position of a message, or raise UnknownMessage."""
    key = (conversation, message_id)
    row = db.execute("SELECT sequence FROM messages WHERE conversation = ? AND id = ?", key).fetchone()
    if row is None:
        raise UnknownMessage(message_id)
    return int(row[0])


def first_of(db: Connection, conversation: int, after: int, before: int, limit: int) -> list[StoredMessage]:
    """Return the oldest messages between two positions."""
    where = f"{SELECT} sequence > ? AND sequence < ? ORDER BY sequence LIMIT ?"
    return list(checked(db, conversation, db.execute(where, (conversation, after, before, limit))))


def last_of(db: Connection, conversation: int, before: int, limit: int) -> list[StoredMessage]:
    """Return the newest messages before a position, oldest first."""
    where = f"{SELECT} sequence < ? ORDER BY sequence DESC LIMIT ?"
    rows = db.execute(where, (conversation, before, limit)).fetchall()
    return list(checked(db, conversation, reversed(rows)))


def check_end(db: Connection, conversation: int, count: int, head: bytes, newest: Sequence[StoredMessage] = ()) -> None:
    """Raise DamagedData if the last message is not the one that the conversation's state names.

    `newest` are the last messages, if they have been read already.
    """
    last = newest or last_of(db, conversation, NO_END, 1)
    compare_end(last, count, head, b"" if last else link_before(db, conversation, 1))


def compare_end(last: Sequence[StoredMessage], count: int, head: bytes, first_link: bytes) -> None:
    """Raise DamagedData if the last of these messages is not the one that the conversation's state names."""
    end = (last[-1].sequence, last[-1].hash) if last else (0, first_link)
    if end != (count, head):
        raise DamagedData(f"message {count:,} of a conversation is not its last")


def checked(db: Connection, conversation: int, rows: Iterable[Row]) -> Iterator[StoredMessage]:
    """Yield messages that follow each other, or raise DamagedData at the first that has changed since it was stored."""
    previous: bytes | None = None
    for row in rows:
        stored = stored_message(row)
        if previous is None:
            previous = link_before(db, conversation, stored.sequence)
        check_link(previous, stored)
        previous = stored.hash
        yield stored


def check_link(previous: bytes, stored: StoredMessage) -> None:
    """Raise DamagedData if a message does not follow the one with this hash as it did when it was stored."""
    if stored.hash != next_link(previous, stored.sequence, stored.message):
        raise DamagedData(f"message {stored.message.id!r} has changed since it was stored")


def link_before(db: Connection, conversation: int, sequence: int) -> bytes:
    """Return the hash that a message follows."""
    if sequence == 1:
        rows = db.execute("SELECT first_link FROM conversations WHERE number = ?", (conversation,))
    else:
        query = "SELECT hash FROM messages WHERE conversation = ? AND sequence = ?"
        rows = db.execute(query, (conversation, sequence - 1))
    row = rows.fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise DamagedData(f"the message before message {sequence:,} is missing")
    return row[0]


def stored_message(row: Row) -> StoredMessage:
    """Return the message in a row of SELECT, or raise DamagedData."""
    if tuple(map(type, row)) not in _TYPES:
        raise DamagedData("a message has a field of the wrong type")
    sequence, id_, speaker, timestamp, routing, extra, content, link = row
    message = ConversationMessage(
        id=id_,
        content=unpacked_text(content),
        speaker=speaker_from(speaker),
        timestamp=timestamp,
        routing=_routing(routing),
        extra=_extra(extra),
    )
    return StoredMessage(sequence=sequence, message=message, hash=link)


@lru_cache(maxsize=256)
def speaker_from(text: str) -> Speaker:
    """Return the speaker in a row, or raise DamagedData."""
    try:
        return msgspec.json.decode(text, type=Speaker)
    except msgspec.MsgspecError as error:
        raise DamagedData(f"a speaker cannot be read: {error}") from error


def speakers_of(db: Connection, conversation: int) -> list[Speaker]:
    """Return everyone who has spoken, once for every name they had."""
    rows = db.execute("SELECT speaker FROM speakers WHERE conversation = ?", (conversation,))
    return [speaker_from(speaker) for (speaker,) in rows]


def envelopes(db: Connection, conversation: int, after: int, before: int) -> list[Envelope]:
    """Return who said the messages between two positions, and to whom."""
    rows = db.execute(
        "SELECT speakers.speaker, routing FROM messages JOIN speakers ON speakers.number = messages.speaker"
        " WHERE messages.conversation = ? AND sequence > ? AND sequence < ? ORDER BY sequence",
        (conversation, after, before),
    )
    return [envelope_of(speaker, routing) for speaker, routing in rows]


def highest_number(db: Connection, conversation: int) -> int:
    """Return the highest N of all ids msg-N, or 0."""
    ids = db.execute("SELECT id FROM messages WHERE conversation = ? AND id GLOB 'msg-[0-9]*'", (conversation,))
    return max((message_number(id_) for (id_,) in ids), default=0)


@lru_cache(maxsize=256)
def envelope_of(speaker: str, routing: str | None) -> Envelope:
    """Return who said a message and to whom, from its columns."""
    said_by, sent = speaker_from(speaker), _routing(routing)
    return Envelope(said_by.role_id, said_by.role_name, sent.resolved_addressees if sent else ())


def _speaker_number(db: Connection, conversation: int, speaker: str) -> int:
    key = (conversation, speaker)
    row = db.execute("SELECT number FROM speakers WHERE conversation = ? AND speaker = ?", key).fetchone()
    if row is None:
        row = (db.execute("INSERT INTO speakers (conversation, speaker) VALUES (?, ?)", key).lastrowid,)
    return int(row[0])


def _routing_text(routing: Routing | None) -> str | None:
    if routing is None:
        return None
    names = (routing.resolved_addressees, routing.raw_next_markers, routing.drop_targets)
    return msgspec.json.encode((*names, routing.parent_message_id, routing.intent)).decode()


def _extra(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise DamagedData(f"fields from other systems cannot be read: {error}") from error


def _routing(text: str | None) -> Routing | None:
    if text is None:
        return None
    try:
        addressees, markers, drops, parent, intent = _routing_decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise DamagedData(f"the routing of a message cannot be read: {error}") from error
    return Routing(
        resolved_addressees=addressees,
        raw_next_markers=markers,
        drop_targets=drops,
        parent_message_id=parent,
        intent=intent,
    )
