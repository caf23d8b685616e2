"""Checks everything that is stored, and reports what was damaged, changed or is stuck. Writes nothing."""

from collections.abc import Iterator

from bullpen.errors import UnknownConversation
from bullpen.store import change_rows as change_values
from bullpen.store import check_rows as check_values
from bullpen.store import stuck
from bullpen.store.base import Finding
from bullpen.store.fsck import (
    Conversation,
    check_beginning,
    check_memory,
    check_messages,
    check_order,
    check_parts,
    check_records,
)
from bullpen.store.packing import DamagedData
from bullpen.store.postgres import approval_rows, conversation_rows, decision_rows, memory_rows, message_rows, turn_rows
from bullpen.store.postgres.connections import Db, Row
from bullpen.store.postgres.place import CONVERSATION, Place

PAGE = 500
"""Rows that are read at once."""

CONVERSATIONS = """
    SELECT number, id, team, team_file, started_at, first_link, messages, head
    FROM conversations LEFT JOIN states ON states.conversation = conversations.number
    WHERE deleted_at IS NULL AND (%(id)s::text IS NULL OR id = %(id)s) ORDER BY number
"""
# What the table checks when a row is written, and more.
IMPOSSIBLE_TURNS = f"""
    SELECT id, state FROM turns WHERE conversation = {CONVERSATION} AND (
        asked_by NOT BETWEEN 1 AND %(messages)s
        OR reply NOT BETWEEN asked_by + 1 AND %(messages)s
        OR (started_at IS NOT NULL) <> EXISTS (SELECT 1 FROM prompts WHERE turn = turns.number)
    )
"""
MESSAGES = f"{message_rows.SELECT} sequence > %(after)s ORDER BY sequence LIMIT {PAGE}"
ORDER = f"SELECT id, number FROM messages WHERE conversation = {CONVERSATION} ORDER BY sequence"
RECORDS = f"""
    SELECT number, id, prompt, base, system, report, command, stream, usage, failure, uses
    FROM turns JOIN prompts ON prompts.turn = turns.number LEFT JOIN streams ON streams.turn = turns.number
    WHERE conversation = {CONVERSATION} AND number > %(after)s ORDER BY number LIMIT {PAGE}
"""
PROMPT = "SELECT prompt, base FROM prompts WHERE turn = %(turn)s"
PARTS = f"""
    SELECT id, data FROM stream_parts JOIN turns ON turns.number = stream_parts.turn
    WHERE conversation = {CONVERSATION}
"""
CHANGES = f"""
    SELECT sequence, is_copy, {change_values.COLUMNS}, patch FROM changes
    WHERE conversation = {CONVERSATION} AND sequence > %(after)s ORDER BY sequence LIMIT {PAGE}
"""
CHECKS = f"""
    SELECT sequence, is_copy, {check_values.COLUMNS} FROM checks
    WHERE conversation = {CONVERSATION} AND sequence > %(after)s ORDER BY sequence LIMIT {PAGE}
"""
TURN_IDS = f"""
    SELECT id FROM turns WHERE conversation = {CONVERSATION}
    UNION SELECT turn FROM changes WHERE conversation = {CONVERSATION} AND is_copy = 1
"""
STATES = f"SELECT id, state FROM turns WHERE conversation = {CONVERSATION}"


def check_conversations(db: Db, conversation_id: str | None) -> Iterator[Finding]:
    """Yield what is wrong with one conversation, or with all."""
    rows = db.execute(CONVERSATIONS, {"id": conversation_id}, binary=True).fetchall()
    if conversation_id is not None and not rows:
        raise UnknownConversation(conversation_id)
    for row in rows:
        conversation = Conversation(*row)
        place = Place(db, conversation.id)
        findings = list(_check_rows(place, conversation))
        # The checks above describe the same problem better.
        yield from findings or _check_state(place, conversation)


def known(place: Place) -> stuck.Known:
    """Return what the rows of a conversation say."""
    states: dict[str, str] = dict(place.all(STATES))
    return stuck.Known(
        highest_turn=turn_rows.highest_number(place),
        highest_message=message_rows.highest_number(place),
        state_of=states.get,
    )


def _check_rows(place: Place, conversation: Conversation) -> Iterator[Finding]:
    yield from check_beginning(conversation)
    yield from check_messages(conversation, _messages(place))
    yield from check_order(conversation, place.ask(ORDER))
    for turn_id, state in place.ask(IMPOSSIBLE_TURNS, messages=conversation.messages):
        yield conversation.finding("turn", f"turn {turn_id!r} is {state!r}, which contradicts its other fields")
    yield from check_records(conversation, _pages(place, RECORDS), lambda turn: place.ask(PROMPT, turn=turn).fetchone())
    yield from check_parts(conversation, place.ask(PARTS))
    turn_ids, messages = {turn_id for (turn_id,) in place.ask(TURN_IDS)}, conversation.messages or 0
    for values, query in ((change_values, CHANGES), (check_values, CHECKS)):
        for kind, problem in values.problems_in(_pages(place, query), messages, turn_ids.__contains__):
            yield conversation.finding(kind, problem)
    for kind, problem in approval_rows.problems(place):
        yield conversation.finding(kind, problem)


def _check_state(place: Place, conversation: Conversation) -> Iterator[Finding]:
    """Read what a list of conversations shows of this one, and why it refuses what is said in it, if it does."""
    try:
        progress = conversation_rows.find(place).progress
        turn_rows.all_of(place, None)
        for problem in stuck.problems(known(place), progress):
            yield conversation.finding("stuck", problem)
        decision_rows.all_of(place)
        for memory in memory_rows.all_of(place):
            yield from check_memory(conversation, memory)
    except UnknownConversation:
        # Its state is missing, which check_messages reports.
        return
    except DamagedData as error:
        yield conversation.finding("record", f"its state cannot be read: {error}")


def _messages(place: Place) -> Iterator[Row]:
    """Yield all messages; text that is not UTF-8 is replaced, so that its message can be named."""
    after = 0
    while rows := place.ask(MESSAGES, after=after).fetchall():
        for *others, content, link in rows:
            yield (*others, content.decode(errors="replace"), link)
        after = rows[-1][0]


def _pages(place: Place, query: str) -> Iterator[Row]:
    """Yield all rows of a query, without the number that they are in order of."""
    after = 0
    while rows := place.ask(query, after=after).fetchall():
        yield from (row[1:] for row in rows)
        after = rows[-1][0]
