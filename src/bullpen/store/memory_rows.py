"""Memories of members as rows: added with the reply of the turn that left one, and never changed."""

from collections.abc import Sequence
from sqlite3 import Connection

import msgspec

from bullpen.memory import MemberMemory, Memory
from bullpen.store.packing import DamagedData, packed, unpacked

SELECT = """
    SELECT turns.id, reply.id, memories.memory
    FROM memories
        JOIN turns ON turns.number = memories.turn
        LEFT JOIN messages AS reply ON reply.conversation = turns.conversation AND reply.sequence = turns.reply
    WHERE memories.conversation = ?
"""

# A cross join keeps the order: SQLite would look at all memories of the conversation.
OF_TURNS = """
    SELECT turns.id, reply.id, memories.memory
    FROM json_each(?2) AS wanted
        CROSS JOIN turns ON turns.conversation = ?1 AND turns.id = wanted.value
        CROSS JOIN memories ON memories.turn = turns.number
        LEFT JOIN messages AS reply ON reply.conversation = turns.conversation AND reply.sequence = turns.reply
    ORDER BY memories.number
"""


def add(db: Connection, conversation: int, turn_id: str, memory: Memory) -> None:
    """Add what a turn left."""
    db.execute(
        "INSERT INTO memories (turn, conversation, member, memory)"
        " SELECT number, conversation, member, ? FROM turns WHERE conversation = ? AND id = ?",
        (packed(msgspec.json.encode(memory)), conversation, turn_id),
    )


def last_of(db: Connection, conversation: int, member: str, up_to: int) -> MemberMemory | None:
    """Return what a member's last turn left that replied with one of the messages up to this one; None if none did."""
    query = f"{SELECT} AND memories.member = ? AND turns.reply <= ? ORDER BY memories.number DESC LIMIT 1"
    row = db.execute(query, (conversation, member, up_to)).fetchone()
    return None if row is None else member_memory(row)


def all_of(db: Connection, conversation: int) -> list[MemberMemory]:
    """Return what every turn left, oldest first."""
    rows = db.execute(f"{SELECT} ORDER BY memories.number", (conversation,))
    return [member_memory(row) for row in rows]


def of_turns(db: Connection, conversation: int, turn_ids: Sequence[str]) -> list[MemberMemory]:
    """Return what these turns left, oldest first, without a look at the memories of others."""
    rows = db.execute(OF_TURNS, (conversation, msgspec.json.encode(turn_ids).decode()))
    return [member_memory(row) for row in rows]


def member_memory(row: tuple[object, ...]) -> MemberMemory:
    """Return the memory in a row, or raise DamagedData."""
    turn_id, reply_id, blob = row
    try:
        memory = msgspec.json.decode(unpacked(blob), type=Memory)
        return msgspec.convert({"turn_id": turn_id, "reply_id": reply_id, "memory": memory}, MemberMemory)
    except msgspec.MsgspecError as error:
        raise DamagedData(f"a memory cannot be read: {error}") from error
