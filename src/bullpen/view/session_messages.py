"""The messages that an agent's session holds before a turn, each with the turn in which it got there."""

from collections.abc import Iterable, Sequence

import msgspec

from bullpen.context.visibility import VisibleMessages
from bullpen.conversation.stored_history import StoredHistory
from bullpen.memory import MemberMemory, SessionUse
from bullpen.routing.progress import Progress
from bullpen.store.base import Store

COPIED = ""
"""In place of a turn: the message was in the session of which this one is a copy."""


def messages_in_session(
    store: Store,
    conversation_id: str,
    member: str,
    use: SessionUse | None,
    *,
    turn_id: str = "",
    new: Sequence[str] = (),
) -> dict[str, str]:
    """Return the ids of messages that a session held before a turn, each with the turn that brought it, newest first.

    The way back leads from each turn to the one that it continued, as its report says. `turn_id` is the turn, unless it
    has not begun, and `new` is what it was given.
    """
    found: dict[str, str] = {}
    # What the first turn in a copy has left tells what came with the copy.
    first: MemberMemory | None = next(iter(store.memories(conversation_id, turn_ids=[turn_id])), None)
    while use is not None and use.is_continued and use.continues not in found.values():
        before = next(iter(store.memories(conversation_id, turn_ids=[use.continues])), None)
        # A copy of another conversation's session continues a turn that is not one of ours.
        record = None if before is None else store.record(conversation_id, before.turn_id, prompt=False)
        if before is None or record is None or before.memory.session_id != use.id:
            return found | _copied(store, conversation_id, member, first, found or new)
        asked_by = store.turn(conversation_id, before.turn_id).message_id
        report = record.report
        for message_id in (*report.kept_ids, report.message_id or asked_by, before.reply_id):
            found[message_id] = before.turn_id
        use, first = report.session, before
    return found


def _copied(
    store: Store, conversation_id: str, member: str, first: MemberMemory | None, known: Iterable[str]
) -> dict[str, str]:
    """Return the messages that came with a copy of a session: those that it had been offered, less what is known."""
    left = first
    replies: tuple[str, ...] = ()
    if left is None:
        progress = msgspec.convert(store.conversation(conversation_id).progress, Progress)
        left = progress.borrowed.get(member)
        # Before the first turn in a copy, what the agent itself said last is after what it had been offered.
        replies = (*left.memory.said, left.reply_id) if left else ()
    if left is None:
        return {}
    memory = left.memory
    numbers = [store.message(conversation_id, message_id).sequence for message_id in known]
    end = min([*numbers, memory.seen_to + 1])
    offered = store.messages(conversation_id, after=memory.since - 1, before=end)
    if memory.visibility == "addressed":
        history = StoredHistory(store, conversation_id, messages=end - 1, highest_number=0)
        visible = set(VisibleMessages(history).newest(member, (), before=end - 1, count=None))
        offered = [one for one in offered if one.sequence - 1 in visible]
    ids: Sequence[str] = [*memory.early, *(one.message.id for one in offered), *replies]
    return dict.fromkeys((one for one in ids if one not in (*memory.pending, *known)), COPIED)
