"""Conversations as rows: creating, listing, changing, owning and deleting them."""

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from bullpen.errors import ConversationExists, NotTheOwner, UnknownConversation
from bullpen.store import decision_rows
from bullpen.store.base import Owner, StateChange, StoredConversation, first_words
from bullpen.store.chain import first_link
from bullpen.store.packing import DamagedData, packed, unpacked, unpacked_text

SELECT = """
    SELECT conversations.id, team, team_file, team_path, started_at, last_at, messages,
        coalesce(
            (SELECT content FROM messages JOIN speakers ON speakers.number = messages.speaker
                WHERE messages.conversation = conversations.number AND sequence <= 20
                AND speakers.speaker LIKE '%"type":"human"%' ORDER BY sequence LIMIT 1),
            (SELECT content FROM messages WHERE conversation = conversations.number AND sequence = 1)),
        (SELECT count(*) FROM turns
            WHERE conversation = conversations.number AND ended_at IS NULL AND state = 'queued'),
        (SELECT count(*) FROM turns
            WHERE conversation = conversations.number AND ended_at IS NULL AND state = 'running'),
        team_task, waits_for, paused, progress, owner, extra, title, archived_at
    FROM conversations JOIN states ON states.conversation = conversations.number
"""
# Each part has an index of its own, and must be in its words. SQLite would read all of a larger one for the changes.
UNSETTLED = """
    SELECT id FROM conversations WHERE number IN (
        SELECT conversation FROM states WHERE instr(progress, '"programs"') > 0
        UNION SELECT conversation FROM changes INDEXED BY changes_begun WHERE finished IS NULL
        {or_owned}) ORDER BY number
"""
OR_OWNED = "UNION SELECT conversation FROM states WHERE owner IS NOT NULL"

_progress_decoder = msgspec.json.Decoder(dict[str, Any])
# The standard library refuses what JSON cannot express, such as NaN.
_progress_encoder = json.JSONEncoder(allow_nan=False)
_owner_decoder = msgspec.json.Decoder(Owner)


class Place(Struct, frozen=True):
    """Where a conversation is in the tables, and where its messages end."""

    number: int
    messages: int
    head: bytes
    owner: Owner | None


def create(
    db: Connection,
    conversation_id: str,
    team: str,
    team_file: str,
    team_path: str,
    started_at: int,
    team_task: str | None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Add a conversation without messages."""
    if db.execute("SELECT 1 FROM conversations WHERE id = ?", (conversation_id,)).fetchone():
        raise ConversationExists(conversation_id)
    link = first_link(conversation_id, team, team_file, started_at)
    number = db.execute(
        "INSERT INTO conversations (id, team, team_file, team_path, started_at, first_link, team_task, extra)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            conversation_id,
            team,
            packed(team_file.encode()),
            team_path,
            started_at,
            link,
            team_task,
            extra_text(extra),
        ),
    ).lastrowid
    db.execute("INSERT INTO states (conversation, head, last_at) VALUES (?, ?, ?)", (number, link, started_at))


def extra_text(extra: Mapping[str, Any] | None) -> str | None:
    """Return fields of other systems as they are stored."""
    return msgspec.json.encode(extra).decode() if extra else None


def place_of(db: Connection, conversation_id: str) -> Place:
    """Return where a conversation is, or raise UnknownConversation."""
    row = db.execute(
        "SELECT conversation, messages, head, owner FROM states"
        " JOIN conversations ON conversations.number = states.conversation WHERE conversations.id = ?",
        (conversation_id,),
    ).fetchone()
    match row:
        case None:
            raise UnknownConversation(conversation_id)
        case (int(number), int(messages), bytes(head), str() | None as owner):
            return Place(number, messages, head, owner_from(owner))
        case _:
            raise DamagedData("the state of a conversation has a field of the wrong type")


def place_for(db: Connection, conversation_id: str, owner: Owner | None) -> Place:
    """Return where an owner may write, or raise NotTheOwner. The caller writes in the same transaction."""
    place = place_of(db, conversation_id)
    check_owner(conversation_id, place.owner, owner)
    return place


def check_owner(conversation_id: str, present: Owner | None, writer: Owner | None) -> None:
    """Raise NotTheOwner unless a conversation belongs to who writes."""
    if token_of(present) == token_of(writer):
        return
    raise NotTheOwner(conversation_id) if present is None else NotTheOwner(conversation_id, present.pid, present.host)


def token_of(owner: Owner | None) -> str | None:
    """Return what tells an owner from all others, whenever it was last seen."""
    return None if owner is None else owner.token


def listed(db: Connection) -> list[StoredConversation]:
    """Return all conversations, the latest activity first."""
    return [_conversation(row) for row in db.execute(f"{SELECT} ORDER BY last_at DESC, conversations.number DESC")]


def unsettled(db: Connection, *, owned: bool) -> list[str]:
    """Return the conversations in which people may be asked about files, or that have begun changes, oldest first."""
    return [row[0] for row in db.execute(UNSETTLED.format(or_owned=OR_OWNED if owned else ""))]


def find(db: Connection, conversation_id: str) -> StoredConversation:
    """Return one conversation, or raise UnknownConversation."""
    row = db.execute(f"{SELECT} WHERE conversations.id = ?", (conversation_id,)).fetchone()
    if row is None:
        raise UnknownConversation(conversation_id)
    return _conversation(row)


def apply(
    db: Connection, conversation: int, change: StateChange, at: int, end: tuple[int, bytes] | None = None
) -> None:
    """Record a change and its time; `end` is the number and the hash of a new last message."""
    given = often_changed(change)
    if end is not None:
        given["messages"], given["head"] = end
    columns = "".join(f", {column} = :{column}" for column in given)
    db.execute(
        f"UPDATE states SET last_at = max(last_at, :at){columns} WHERE conversation = :conversation",  # noqa: S608
        {**given, "at": at, "conversation": conversation},
    )
    if change.decision is not None:
        decision_rows.add(db, conversation, change.decision)
    for column, value in seldom_changed(change).items():
        db.execute(f"UPDATE conversations SET {column} = ? WHERE number = ?", (value, conversation))  # noqa: S608


def often_changed(change: StateChange) -> dict[str, object]:
    """Return the given columns of the table that is written with every message."""
    values: dict[str, object] = {
        "waits_for": change.waits_for,
        "paused": change.paused,
        "progress": _json(change.progress),
    }
    return {column: value for column, value in values.items() if value is not UNSET}


def seldom_changed(change: StateChange) -> dict[str, object]:
    """Return the given columns of the table that is not written with every message."""
    columns = ("team_path", "team_task", "title", "archived_at")
    values = {column: getattr(change, column) for column in columns}
    return {column: value for column, value in values.items() if value is not UNSET}


def set_owner(db: Connection, conversation: int, owner: Owner | None) -> None:
    """Record who owns a conversation."""
    db.execute("UPDATE states SET owner = ? WHERE conversation = ?", (owner_text(owner), conversation))


def owner_text(owner: Owner | None) -> str | None:
    """Return an owner as it is stored."""
    return None if owner is None else msgspec.json.encode(owner).decode()


def delete(db: Connection, conversation: int, at: int) -> None:
    """Empty a conversation, so that only its id is left. The index must not contain its words any more."""
    key = (conversation,)
    db.execute("DELETE FROM approvals WHERE conversation = ?", key)
    db.execute("DELETE FROM checks WHERE conversation = ?", key)
    db.execute("DELETE FROM changes WHERE conversation = ?", key)
    db.execute("DELETE FROM memories WHERE conversation = ?", key)
    db.execute("DELETE FROM prompts WHERE turn IN (SELECT number FROM turns WHERE conversation = ?)", key)
    db.execute("DELETE FROM streams WHERE turn IN (SELECT number FROM turns WHERE conversation = ?)", key)
    db.execute("DELETE FROM stream_parts WHERE turn IN (SELECT number FROM turns WHERE conversation = ?)", key)
    db.execute("DELETE FROM turns WHERE conversation = ?", key)
    db.execute("DELETE FROM decisions WHERE conversation = ?", key)
    db.execute("DELETE FROM messages WHERE conversation = ?", key)
    db.execute("DELETE FROM speakers WHERE conversation = ?", key)
    db.execute("DELETE FROM states WHERE conversation = ?", key)
    db.execute(
        "UPDATE conversations SET team = '', team_file = ?, team_path = '', team_task = NULL, extra = NULL,"
        " title = NULL, archived_at = NULL, deleted_at = ? WHERE number = ?",
        (packed(b""), at, conversation),
    )


def discard(db: Connection, conversation: int) -> None:
    """Remove a conversation in which nothing was ever said, together with its id."""
    key = (conversation,)
    db.execute("DELETE FROM approvals WHERE conversation = ?", key)
    db.execute("DELETE FROM checks WHERE conversation = ?", key)
    db.execute("DELETE FROM changes WHERE conversation = ?", key)
    db.execute("DELETE FROM decisions WHERE conversation = ?", key)
    db.execute("DELETE FROM states WHERE conversation = ?", key)
    db.execute("DELETE FROM conversations WHERE number = ?", key)


def _conversation(row: tuple[object, ...]) -> StoredConversation:
    *before, first = row[:8]
    return conversation_from((*before, "" if first is None else unpacked_text(first), *row[8:]))


def conversation_from(row: tuple[object, ...]) -> StoredConversation:
    """Return the conversation in a row of SELECT whose first message is text, or raise DamagedData."""
    id_, team, team_file, team_path, started_at, last_at, messages, first, queued, running, *state = row
    team_task, waits_for, paused, progress, owner, extra, title, archived_at = state
    try:
        return msgspec.convert(
            {
                "id": id_,
                "team": team,
                "team_file": unpacked(team_file).decode(),
                "team_path": team_path,
                "started_at": started_at,
                "last_at": last_at,
                "messages": messages,
                "first_words": first_words(str(first)),
                "queued": queued,
                "running": running,
                "team_task": team_task,
                "waits_for": waits_for,
                "paused": paused,
                "progress": _progress_decoder.decode(str(progress)),
                "owner": owner_from(owner),
                "extra": None if extra is None else _progress_decoder.decode(str(extra)),
                "title": title,
                "archived_at": archived_at,
            },
            StoredConversation,
        )
    except msgspec.MsgspecError as error:
        raise DamagedData(f"the state of conversation {id_!r} cannot be read: {error}") from error


def _json(progress: object) -> object:
    return progress if progress is UNSET else _progress_encoder.encode(progress)


def owner_from(text: object) -> Owner | None:
    """Return the owner in a row, or raise DamagedData."""
    try:
        return None if text is None else _owner_decoder.decode(str(text))
    except msgspec.MsgspecError as error:
        raise DamagedData(f"the owner of a conversation cannot be read: {error}") from error
