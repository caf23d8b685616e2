"""Memories of members as rows: added with the reply of the turn that left one, and never changed."""

from collections.abc import Sequence

import msgspec

from bullpen.memory import MemberMemory, Memory
from bullpen.store.memory_rows import member_memory
from bullpen.store.packing import packed
from bullpen.store.postgres.place import CONVERSATION, Place

INSERT = """
    INSERT INTO memories (turn, conversation, member, memory)
    SELECT number, conversation, member, %(memory)s FROM turns WHERE number = %(turn)s
"""
SELECT = f"""
    SELECT turns.id, reply.id, memories.memory
    FROM memories
        JOIN turns ON turns.number = memories.turn
        LEFT JOIN messages AS reply ON reply.conversation = turns.conversation AND reply.sequence = turns.reply
    WHERE memories.conversation = {CONVERSATION}
"""


def add(place: Place, turn: int, memory: Memory) -> None:
    """Add what a turn left."""
    place.ask(INSERT, turn=turn, memory=packed(msgspec.json.encode(memory)))


def last_of(place: Place, member: str, up_to: int) -> MemberMemory | None:
    """Return what a member's last turn left that replied with one of the messages up to this one; None if none did."""
    where = "AND memories.member = %(member)s AND turns.reply <= %(up_to)s ORDER BY memories.number DESC LIMIT 1"
    return next(map(member_memory, place.all(f"{SELECT} {where}", member=member, up_to=up_to)), None)


def all_of(place: Place) -> list[MemberMemory]:
    """Return what every turn left, oldest first."""
    return [member_memory(row) for row in place.all(f"{SELECT} ORDER BY memories.number")]


def of_turns(place: Place, turn_ids: Sequence[str]) -> list[MemberMemory]:
    """Return what these turns left, oldest first."""
    where = "AND turns.id = ANY(%(turns)s::text[]) ORDER BY memories.number"
    return [member_memory(row) for row in place.all(f"{SELECT} {where}", turns=list(turn_ids))]
