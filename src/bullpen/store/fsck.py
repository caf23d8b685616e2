"""Checks everything that is stored, and reports what was damaged, changed or is stuck. Writes nothing."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from sqlite3 import Connection

from msgspec import Struct

from bullpen.errors import UnknownConversation
from bullpen.memory import MemberMemory
from bullpen.store import (
    approval_rows,
    change_rows,
    check_rows,
    conversation_rows,
    decision_rows,
    memory_rows,
    message_rows,
    search,
    stuck,
    turn_rows,
)
from bullpen.store.base import Finding, FindingKind
from bullpen.store.chain import first_link, next_link
from bullpen.store.packing import DamagedData, unpacked

CONVERSATIONS = """
    SELECT number, id, team, team_file, started_at, first_link, messages, head
    FROM conversations LEFT JOIN states ON states.conversation = conversations.number
    WHERE deleted_at IS NULL AND (:id IS NULL OR id = :id) ORDER BY number
"""

# What the table checks when a row is written, and more.
IMPOSSIBLE_TURNS = """
    SELECT id, state FROM turns WHERE conversation = :conversation AND (
        state NOT IN ('queued', 'running', 'done', 'failed', 'cancelled', 'interrupted', 'dropped')
        OR (started_at IS NULL) <> (state IN ('queued', 'dropped'))
        OR (started_at IS NULL) <> (owner IS NULL)
        OR (ended_at IS NULL) <> (state IN ('queued', 'running'))
        OR (reply IS NOT NULL) <> (state = 'done')
        OR asked_by NOT BETWEEN 1 AND :messages
        OR reply NOT BETWEEN asked_by + 1 AND :messages
        OR (started_at IS NOT NULL) <> EXISTS (SELECT 1 FROM prompts WHERE turn = turns.number)
    )
"""

RECORDS = """
    SELECT id, prompt, base, system, report, command, stream, usage, failure, uses
    FROM turns JOIN prompts ON prompts.turn = turns.number LEFT JOIN streams ON streams.turn = turns.number
    WHERE conversation = ? ORDER BY number
"""

PARTS = "SELECT id, data FROM stream_parts JOIN turns ON turns.number = stream_parts.turn WHERE conversation = ?"

# Python cannot decode the error message if it contains the name of a damaged table.
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)


class Conversation(Struct, frozen=True):
    """A row of CONVERSATIONS, of whichever store. In a damaged file, its values may be of any type."""

    number: int
    id: str
    team: str
    team_file: object
    started_at: int
    first_link: object
    messages: int | None
    head: object

    def finding(self, kind: FindingKind, text: str) -> Finding:
        """Return a problem with this conversation."""
        return Finding(kind=kind, conversation_id=self.id, text=text)


Check = Callable[[Connection, Conversation], Iterator[Finding]]


def check_file(db: Connection) -> Iterator[Finding]:
    """Yield what SQLite finds wrong with the file."""
    try:
        for (problem,) in db.execute("PRAGMA integrity_check"):
            if problem != "ok":
                yield Finding(kind="file", conversation_id=None, text=str(problem))
    except UNREADABLE as error:
        yield Finding(kind="file", conversation_id=None, text=str(error))


def check_index(db: Connection) -> Iterator[Finding]:
    """Yield what is wrong with the search index. Waits for writers, and blocks them while it runs."""
    try:
        ((unknown,),) = db.execute("SELECT (SELECT number FROM indexed) > coalesce(max(number), 0) FROM messages")
        if unknown:
            yield Finding(kind="index", conversation_id=None, text="a search would not find the next messages")
        search.check(db)
    except UNREADABLE as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            raise
        yield Finding(kind="index", conversation_id=None, text=str(error))


def check_conversations(db: Connection, conversation_id: str | None) -> Iterator[Finding]:
    """Yield what is wrong with one conversation, or with all."""
    rows = db.execute(CONVERSATIONS, {"id": conversation_id}).fetchall()
    if conversation_id is not None and not rows:
        raise UnknownConversation(conversation_id)
    for row in rows:
        yield from _check_conversation(db, Conversation(*row))


def _check_conversation(db: Connection, conversation: Conversation) -> list[Finding]:
    findings: list[Finding] = []
    with _damaged_text_allowed(db):
        for check in CHECKS:
            findings += _readable(check, db, conversation)
    # The checks above describe the same problem better.
    return findings or list(_readable(_check_state, db, conversation))


@contextmanager
def _damaged_text_allowed(db: Connection) -> Iterator[None]:
    """Read text that is not valid UTF-8, too: then its message can be named, and those after it are checked."""
    db.text_factory = partial(str, encoding="utf-8", errors="replace")
    try:
        yield
    finally:
        db.text_factory = str


def _readable(check: Check, db: Connection, conversation: Conversation) -> Iterator[Finding]:
    """Yield what a check finds, and continue with the next one if the file cannot be read."""
    try:
        yield from check(db, conversation)
    except UNREADABLE as error:
        yield conversation.finding("file", str(error))


def _check_state(db: Connection, conversation: Conversation) -> Iterator[Finding]:
    """Read what a list of conversations shows of this one, and why it refuses what is said in it, if it does."""
    try:
        progress = conversation_rows.find(db, conversation.id).progress
        turn_rows.all_of(db, conversation.number, None)
        for problem in stuck.problems(stuck.known(db, conversation.number), progress):
            yield conversation.finding("stuck", problem)
        decision_rows.all_of(db, conversation.number)
        for memory in memory_rows.all_of(db, conversation.number):
            yield from check_memory(conversation, memory)
    except UnknownConversation:
        # Its state is missing, which _check_chain reports.
        return
    except DamagedData as error:
        yield conversation.finding("record", f"its state cannot be read: {error}")


def check_memory(conversation: Conversation, left: MemberMemory) -> Iterator[Finding]:
    """Yield what a memory says that cannot be: a member would not get messages that it has not seen."""
    memory = left.memory
    if not 1 <= memory.since <= memory.seen_to <= (conversation.messages or 0):
        seen = f"messages {memory.since} to {memory.seen_to}"
        yield conversation.finding("turn", f"turn {left.turn_id!r} cannot have left a session that has seen {seen}")


def _check_beginning(_: Connection, conversation: Conversation) -> Iterator[Finding]:
    return check_beginning(conversation)


def check_beginning(conversation: Conversation) -> Iterator[Finding]:
    """Yield whether the team or the start of a conversation has changed."""
    try:
        team_file = unpacked(conversation.team_file).decode()
        expected = first_link(conversation.id, conversation.team, team_file, conversation.started_at)
    except (DamagedData, TypeError) as error:
        yield conversation.finding("changed", f"its start cannot be read: {error}")
        return
    if conversation.first_link != expected:
        yield conversation.finding("changed", "its team or its start has changed since it was stored")


def _check_chain(db: Connection, conversation: Conversation) -> Iterator[Finding]:
    return check_messages(
        conversation, db.execute(f"{message_rows.SELECT} TRUE ORDER BY sequence", (conversation.number,))
    )


def check_messages(conversation: Conversation, rows: Iterable[message_rows.Row]) -> Iterator[Finding]:
    """Yield what is wrong with all messages of a conversation, in their order."""
    last, previous = 0, conversation.first_link
    for row in rows:
        sequence, message_id, *_, link = row
        if isinstance(sequence, int) and sequence != last + 1:
            yield conversation.finding("missing", f"messages before message {message_id!r} are missing")
        elif problem := _problem(row, previous):
            yield conversation.finding("changed", f"message {message_id!r} has changed since it was stored: {problem}")
        last, previous = (sequence if isinstance(sequence, int) else last + 1), link
    if (last, previous) != (conversation.messages, conversation.head):
        yield conversation.finding("missing", f"its last message is number {last}, not {conversation.messages}")


def _problem(row: message_rows.Row, previous: object) -> str:
    """Return what is wrong with a message that follows another, or nothing."""
    try:
        stored = message_rows.stored_message(row)
    except DamagedData as error:
        return str(error)
    expected = next_link(previous if isinstance(previous, bytes) else b"", stored.sequence, stored.message)
    return "" if expected == stored.hash else "its hash does not match"


def _check_order(db: Connection, conversation: Conversation) -> Iterator[Finding]:
    query = "SELECT id, number FROM messages WHERE conversation = ? ORDER BY sequence"
    return check_order(conversation, db.execute(query, (conversation.number,)))


def check_order(conversation: Conversation, rows: Iterable[message_rows.Row]) -> Iterator[Finding]:
    """Yield which messages were stored before the one that they follow."""
    last = 0
    for message_id, number in rows:
        if number < last:
            yield conversation.finding("out_of_order", f"message {message_id!r} is older than the message before it")
        last = number


def _check_turns(db: Connection, conversation: Conversation) -> Iterator[Finding]:
    values = {"conversation": conversation.number, "messages": conversation.messages}
    for turn_id, state in db.execute(IMPOSSIBLE_TURNS, values):
        yield conversation.finding("turn", f"turn {turn_id!r} is {state!r}, which contradicts its other fields")


def _check_records(db: Connection, conversation: Conversation) -> Iterator[Finding]:
    yield from check_records(conversation, db.execute(RECORDS, (conversation.number,)), turn_rows.finder(db))
    yield from check_parts(conversation, db.execute(PARTS, (conversation.number,)))


def check_records(
    conversation: Conversation, rows: Iterable[message_rows.Row], find_prompt: turn_rows.FindPrompt
) -> Iterator[Finding]:
    """Yield which turns' records cannot be read, from rows of RECORDS."""
    for turn_id, *parts, usage, failure, uses in rows:
        try:
            turn_rows.read_record(find_prompt, tuple(parts))
            for blob in filter(None, (usage, failure, uses)):
                unpacked(blob)
        except DamagedData as error:
            yield conversation.finding("record", f"the record of turn {turn_id!r} cannot be read: {error}")


def check_parts(conversation: Conversation, rows: Iterable[message_rows.Row]) -> Iterator[Finding]:
    """Yield which parts of outputs cannot be read, from rows of PARTS."""
    for turn_id, data in rows:
        try:
            unpacked(data)
        except DamagedData as error:
            yield conversation.finding("record", f"output of the running turn {turn_id!r} cannot be read: {error}")


def _check_changes(db: Connection, conversation: Conversation) -> Iterator[Finding]:
    for rows in (change_rows, check_rows):
        for kind, problem in rows.problems(db, conversation.number, conversation.messages or 0):
            yield conversation.finding(kind, problem)


def _check_approvals(db: Connection, conversation: Conversation) -> Iterator[Finding]:
    for kind, problem in approval_rows.problems(db, conversation.number):
        yield conversation.finding(kind, problem)


CHECKS: tuple[Check, ...] = (
    *(_check_beginning, _check_chain, _check_order, _check_turns, _check_records, _check_changes, _check_approvals),
)
