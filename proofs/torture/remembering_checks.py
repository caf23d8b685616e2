"""What must hold of memories after kills, read from the database and from the session files themselves."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from bullpen.memory import MemberMemory
from bullpen.store.base import Store, Turn

CAUSES = re.compile(r"made it forget|another turn runs in its session|its last two turns in its session failed")


def rebuilt_without_cause(store: Store, conversation_id: str, broken: set[str]) -> Iterator[str]:
    """Yield which sessions did not go on although nobody had touched them, and nobody had made them forget."""
    turns = {turn.id: turn for turn in store.turns(conversation_id)}
    memories = [(turns[left.turn_id], left.memory.session_id) for left in store.memories(conversation_id)]
    for turn in turns.values():
        record = store.record(conversation_id, turn.id) if turn.started_at else None
        session = None if record is None else record.report.session
        reason = "" if session is None or CAUSES.search(session.reason) else session.reason
        if not reason or any(one in reason for one in broken):
            continue
        # A turn that is tried again keeps its number, so the order of numbers is not that of time.
        before = [
            one for ended, one in memories if ended.member == turn.member and _at(ended) <= (turn.started_at or 0)
        ]
        if not broken.intersection(before[-1:]):
            yield f"turn {turn.id} of {turn.member} began anew without a cause: {reason} (after {before[-2:]})"


def _at(turn: Turn) -> int:
    return turn.ended_at or 0


def seen_too_early(store: Store, conversation_id: str, homes: Path, broken: set[str]) -> Iterator[str]:
    """Yield which memories say more than is in the part of the session that they vouch for."""
    turns = {turn.id: turn for turn in store.turns(conversation_id)}
    words = {
        stored.sequence: (stored.message.id, stored.message.content.split()[0])
        for stored in store.messages(conversation_id, limit=100_000)
    }
    for left in store.memories(conversation_id):
        if turns[left.turn_id].state != "done" or turns[left.turn_id].reply_id is None:
            yield f"turn {left.turn_id} is {turns[left.turn_id].state}, and left a memory"
        if left.memory.session_id not in broken:
            yield from _not_in_file(left, words, homes)


def _not_in_file(left: MemberMemory, words: dict[int, tuple[str, str]], homes: Path) -> Iterator[str]:
    memory = left.memory
    files = [file for file in homes.rglob(f"*{memory.session_id}.jsonl") if memory.session_id]
    if len(files) != 1:
        yield f"turn {left.turn_id} left a session without a file"
        return
    content = files[0].read_bytes()[: memory.file.size]
    if not content.endswith(b"\n"):
        yield f"turn {left.turn_id} vouches for half a line of its session"
    text = "\n".join(map(_readable, content.splitlines()))
    for number in range(memory.since, memory.seen_to + 1):
        message_id, word = words[number]
        is_there = re.search(rf"(?<![\w:]){re.escape(word)}(?![\w:])", text) is not None
        if not is_there and message_id not in memory.pending:
            yield f"turn {left.turn_id} says that its session has seen message {number} ({word}), and it has not"


def _readable(line: bytes) -> str:
    """Return a record without escapes, which a word could be hidden in; nothing if it is damaged."""
    try:
        return json.dumps(json.loads(line), ensure_ascii=False).replace("\\n", "\n")
    except ValueError:
        return ""
