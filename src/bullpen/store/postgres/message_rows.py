"""Messages as rows: appending and reading them. Every message that is read is checked against its hash."""

from collections.abc import Iterator, Sequence

from psycopg import Cursor

from bullpen.context.history import Envelope, message_number
from bullpen.messages import ConversationMessage, Speaker
from bullpen.store.base import StoredMessage
from bullpen.store.chain import next_link
from bullpen.store.message_rows import check_link, columns_of, envelope_of, speaker_from, stored_message
from bullpen.store.packing import DamagedData
from bullpen.store.postgres.connections import Row
from bullpen.store.postgres.place import CONVERSATION, Place
from bullpen.store.postgres.search import words_column

COLUMNS = "sequence, messages.id, speakers.speaker, timestamp, routing, messages.extra, content, hash"
FROM = "FROM messages JOIN speakers ON speakers.number = messages.speaker"
SELECT = f"SELECT {COLUMNS} {FROM} WHERE messages.conversation = {CONVERSATION} AND"
# With the hash of the message before it.
ONE = f"""
    SELECT {COLUMNS}, (SELECT before.hash FROM messages AS before
        WHERE before.conversation = messages.conversation AND before.sequence = messages.sequence - 1)
    {FROM} WHERE messages.conversation = {CONVERSATION} AND messages.id = %(message)s
"""

INSERT = """
    INSERT INTO messages (conversation, sequence, id, speaker, timestamp, routing, extra, content, hash, words)
    VALUES (%(conversation)s, %(sequence)s, %(message)s,
        (SELECT number FROM speakers
            WHERE conversation = %(conversation)s AND md5(speaker) = md5(%(speaker)s) AND speaker = %(speaker)s),
        %(timestamp)s, %(routing)s, %(extra)s, %(content)s, %(hash)s, array_to_tsvector(%(words)s::text[]))
"""
SPEAKERS = f"SELECT speaker FROM speakers WHERE conversation = {CONVERSATION} ORDER BY number"
IDS = f"SELECT id, sequence FROM messages WHERE conversation = {CONVERSATION} AND id = ANY(%(ids)s::text[])"


class NewMessages:
    """Messages that are about to be added: what is there is asked for at once, then they are."""

    def __init__(self, place: Place, messages: Sequence[ConversationMessage]) -> None:
        self._place = place
        # What cannot be stored is refused later, in words.
        self._ids = place.ask(IDS, ids=[message.id for message in messages if isinstance(message.id, str)])
        self._speakers = place.ask(SPEAKERS)
        self._sequences: dict[str, int] | None = None
        self._spoken: set[str] = set()

    @property
    def sequences(self) -> dict[str, int]:
        """The places of messages, by their ids."""
        if self._sequences is None:
            self._sequences = dict(self._place.read(self._ids))
            self._spoken = {speaker for (speaker,) in self._speakers}
        return self._sequences

    def add(self, previous: bytes, sequence: int, message: ConversationMessage) -> bytes | None:
        """Store a message after another, and return its hash; None if its id is already stored."""
        link = next_link(previous, sequence, message)
        speaker, routing, extra = columns_of(message)
        if message.id in self.sequences:
            return None
        conversation = self._place.found().number
        if speaker not in self._spoken:
            insert = "INSERT INTO speakers (conversation, speaker) VALUES (%(conversation)s, %(speaker)s)"
            self._place.ask(insert, conversation=conversation, speaker=speaker)
            self._spoken.add(speaker)
        self._place.ask(
            INSERT,
            conversation=conversation,
            sequence=sequence,
            message=message.id,
            speaker=speaker,
            timestamp=message.timestamp,
            routing=routing,
            extra=extra,
            content=message.content.encode(),
            hash=link,
            words=words_column(message.content),
        )
        self.sequences[message.id] = sequence
        return link


def find(place: Place, message_id: str) -> StoredMessage | None:
    """Return the message with an id."""
    for *row, previous in place.all(ONE, message=message_id):
        first = place.found().first_link if row[0] == 1 else None
        return next(checked([tuple(row)], previous, first))
    return None


def first_of(place: Place, after: int, before: int, limit: int | None) -> list[StoredMessage]:
    """Return the oldest messages between two positions."""
    where = "sequence >= %(after)s AND sequence < %(before)s ORDER BY sequence LIMIT %(limit)s"
    rows = place.all(f"{SELECT} {where}", after=after, before=before, limit=_one_more(limit))
    # The message at the first position was only read for its hash.
    previous = rows.pop(0)[-1] if rows and rows[0][0] == after else None
    return list(checked(rows[:limit], previous, place.found().first_link))


def ask_last(place: Place, before: int, limit: int | None) -> Cursor[Row]:
    """Ask for the newest messages before a position."""
    where = "sequence < %(before)s ORDER BY sequence DESC LIMIT %(limit)s"
    return place.ask(f"{SELECT} {where}", before=before, limit=_one_more(limit))


def read_last(place: Place, answer: Cursor[Row], limit: int | None) -> list[StoredMessage]:
    """Return what was asked for, oldest first."""
    rows = place.read(answer)[::-1]
    previous = rows.pop(0)[-1] if limit is not None and len(rows) > limit else None
    return list(checked(rows, previous, place.found().first_link))


def checked(rows: Sequence[Row], previous: bytes | None, first_link: bytes | None) -> Iterator[StoredMessage]:
    """Yield messages that follow each other, or raise DamagedData at the first that has changed since it was stored.

    `previous` is the hash that they follow; None if they begin with the first message of the conversation.
    """
    if previous is None and rows:
        previous = first_link if rows[0][0] == 1 else None
        if previous is None:
            raise DamagedData(f"the message before message {rows[0][0]:,} is missing")
    for row in rows:
        stored = stored_message(as_text(row))
        check_link(previous or b"", stored)
        previous = stored.hash
        yield stored


def as_text(row: Row) -> Row:
    """Return a row with its content as text, or raise DamagedData."""
    *others, content, link = row
    try:
        return (*others, content.decode(), link)
    except UnicodeDecodeError as error:
        raise DamagedData(str(error)) from error


def speakers_of(place: Place) -> list[Speaker]:
    """Return everyone who has spoken, once for every name they had."""
    return [speaker_from(speaker) for (speaker,) in place.all(SPEAKERS)]


def envelopes(place: Place, after: int, before: int) -> list[Envelope]:
    """Return who said the messages between two positions, and to whom."""
    rows = place.all(
        f"SELECT speakers.speaker, routing {FROM} WHERE messages.conversation = {CONVERSATION}"
        " AND sequence > %(after)s AND sequence < %(before)s ORDER BY sequence",
        after=after,
        before=before,
    )
    return [envelope_of(speaker, routing) for speaker, routing in rows]


def highest_number(place: Place) -> int:
    """Return the highest N of all ids msg-N, or 0."""
    query = f"SELECT id FROM messages WHERE conversation = {CONVERSATION} AND id ~ '^msg-[0-9]{{1,15}}$'"
    return max((message_number(message_id) for (message_id,) in place.all(query)), default=0)


def _one_more(limit: int | None) -> int | None:
    return None if limit is None else limit + 1
