"""Conversations as rows: creating, listing, changing, owning and deleting them."""

from collections.abc import Sequence

from psycopg import sql

from bullpen.errors import ConversationExists, UnknownConversation
from bullpen.store.base import FIRST_WORDS_CHARACTERS, Owner, StateChange, StoredConversation
from bullpen.store.conversation_rows import (
    OR_OWNED,
    UNSETTLED,
    conversation_from,
    often_changed,
    owner_text,
    seldom_changed,
)
from bullpen.store.packing import packed
from bullpen.store.postgres import decision_rows
from bullpen.store.postgres.connections import Db, Row
from bullpen.store.postgres.place import CONVERSATION, Place

# first_words looks at four times as many characters as it returns, of up to four bytes each.
FIRST = f"substring(content FROM 1 FOR {16 * FIRST_WORDS_CHARACTERS})"
SELECT = f"""
    SELECT conversations.id, team, team_file, team_path, started_at, last_at, messages,
        coalesce(
            (SELECT {FIRST} FROM messages JOIN speakers ON speakers.number = messages.speaker
                WHERE messages.conversation = conversations.number AND sequence <= 20
                AND speakers.speaker LIKE '%%"type":"human"%%' ORDER BY sequence LIMIT 1),
            (SELECT {FIRST} FROM messages WHERE conversation = conversations.number AND sequence = 1)),
        (SELECT count(*) FROM turns
            WHERE conversation = conversations.number AND ended_at IS NULL AND state = 'queued'),
        (SELECT count(*) FROM turns
            WHERE conversation = conversations.number AND ended_at IS NULL AND state = 'running'),
        team_task, waits_for, paused, progress, owner, extra, title, archived_at
    FROM conversations JOIN states ON states.conversation = conversations.number
"""
CREATE = """
    WITH created AS (
        INSERT INTO conversations (id, team, team_file, team_path, started_at, first_link, team_task, extra)
        VALUES (%(id)s, %(team)s, %(team_file)s, %(team_path)s, %(started_at)s, %(link)s, %(team_task)s, %(extra)s)
        ON CONFLICT DO NOTHING RETURNING number)
    INSERT INTO states (conversation, head, last_at) SELECT number, %(link)s, %(started_at)s FROM created
    RETURNING conversation
"""
OF_TURNS = "turn IN (SELECT number FROM turns WHERE conversation = %(number)s)"
DELETIONS = (
    "DELETE FROM approvals WHERE conversation = %(number)s",
    "DELETE FROM checks WHERE conversation = %(number)s",
    "DELETE FROM changes WHERE conversation = %(number)s",
    "DELETE FROM memories WHERE conversation = %(number)s",
    f"DELETE FROM prompts WHERE {OF_TURNS}",
    f"DELETE FROM streams WHERE {OF_TURNS}",
    f"DELETE FROM stream_parts WHERE {OF_TURNS}",
    "DELETE FROM turns WHERE conversation = %(number)s",
    "DELETE FROM decisions WHERE conversation = %(number)s",
    "DELETE FROM messages WHERE conversation = %(number)s",
    "DELETE FROM speakers WHERE conversation = %(number)s",
    "DELETE FROM states WHERE conversation = %(number)s",
)
EMPTY = """
    UPDATE conversations SET team = '', team_file = %(nothing)s, team_path = '', team_task = NULL, extra = NULL,
        title = NULL, archived_at = NULL, deleted_at = %(at)s WHERE number = %(number)s
"""


def create(db: Db, conversation_id: str, values: dict[str, object]) -> None:
    """Add a conversation without messages."""
    if db.execute(CREATE, {"id": conversation_id, **values}).fetchone() is None:
        raise ConversationExists(conversation_id)


def listed(db: Db) -> list[StoredConversation]:
    """Return all conversations, the latest activity first."""
    # Without values, psycopg would take the doubled percent signs as they are.
    query = f"{SELECT} ORDER BY last_at DESC, conversations.number DESC"
    return [_conversation(row) for row in db.execute(query, {}, binary=True)]


def unsettled(db: Db, *, owned: bool) -> list[str]:
    """Return the conversations in which people may be asked about files, or that have begun changes, oldest first."""
    query = UNSETTLED.format(or_owned=OR_OWNED if owned else "").replace("instr", "strpos")
    query = query.replace("INDEXED BY changes_begun ", "")
    return [str(row[0]) for row in db.execute(query)]


def find(place: Place) -> StoredConversation:
    """Return one conversation."""
    rows = place.all(f"{SELECT} WHERE conversations.id = %(id)s")
    if not rows:
        raise UnknownConversation(place.id)
    return _conversation(rows[0])


def apply(place: Place, change: StateChange, at: int, end: tuple[int, bytes] | None = None) -> None:
    """Record a change and its time; `end` is the number and the hash of a new last message."""
    given = often_changed(change)
    if end is not None:
        given["messages"], given["head"] = end
    number = place.found().number
    if given or at:
        columns = sql.SQL("").join(_column(name) for name in given)
        update = "UPDATE states SET last_at = greatest(last_at, %(at)s){} WHERE conversation = %(number)s"
        place.ask(sql.SQL(update).format(columns), **given, at=at, number=number)
    if change.decision is not None:
        decision_rows.add(place, change.decision)
    if seldom := seldom_changed(change):
        columns = sql.SQL("").join(_column(name) for name in seldom)
        update = "UPDATE conversations SET id = id{} WHERE number = %(number)s"
        place.ask(sql.SQL(update).format(columns), **seldom, number=number)


def set_owner(place: Place, owner: Owner | None) -> None:
    """Record who owns a conversation."""
    update = """
        UPDATE states SET owner = %(owner)s, owner_token = %(token)s, owner_node = %(node)s, locked_at = now()
        WHERE conversation = %(number)s
    """
    token, node = (None, None) if owner is None else (owner.token, owner.node or None)
    place.ask(update, owner=owner_text(owner), token=token, node=node, number=place.found().number)


def left_by_nodes(db: Db, living: Sequence[int]) -> list[str]:
    """Return the conversations of all other nodes in which turns run, or wait for nobody's word."""
    query = """
        SELECT id FROM conversations JOIN states ON states.conversation = number
        WHERE owner_node IS NOT NULL AND NOT owner_node = ANY(%(living)s) AND EXISTS (
            SELECT 1 FROM turns WHERE turns.conversation = conversations.number AND ended_at IS NULL
            AND (state = 'running' OR paused IS NULL))
    """
    return [str(row[0]) for row in db.execute(query, {"living": list(living)})]


def delete(place: Place, at: int) -> None:
    """Empty a conversation, so that only its id is left."""
    for deletion in DELETIONS:
        place.ask(deletion, number=place.found().number)
    place.ask(EMPTY, number=place.found().number, at=at, nothing=packed(b""))


def discard(place: Place) -> bool:
    """Remove a conversation in which nothing was ever said, together with its id; return whether that is so."""
    answer = place.ask(f"SELECT EXISTS (SELECT 1 FROM turns WHERE conversation = {CONVERSATION})")
    if place.found().messages or place.read(answer) == [(True,)]:
        return False
    for deletion in (*DELETIONS, "DELETE FROM conversations WHERE number = %(number)s"):
        place.ask(deletion, number=place.found().number)
    return True


def _column(name: str) -> sql.Composed:
    return sql.SQL(", {} = {}").format(sql.Identifier(name), sql.Placeholder(name))


def _conversation(row: Row) -> StoredConversation:
    *before, first = row[:8]
    # It may be cut within a character.
    text = "" if first is None else first.decode(errors="ignore")
    return conversation_from((*before, text, *row[8:]))
