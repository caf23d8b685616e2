"""Replies that an agent may not see yet: of others who do the same task."""

from collections.abc import Collection

from bullpen.messages import ConversationMessage
from bullpen.routing.summaries import Summary
from bullpen.store.base import Store, StoredMessage

FEW = 4


def replies_of(store: Store, conversation_id: str, turns: Collection[str]) -> list[str]:
    """Return the ids of what turns have replied."""
    replies = (store.turn(conversation_id, turn_id).reply_id for turn_id in sorted(turns))
    return [reply for reply in replies if reply is not None]


def last_visible(
    store: Store, conversation_id: str, hidden: Collection[str], summaries: Collection[Summary] = ()
) -> StoredMessage | None:
    """Return the last message that can be answered: not the reply of a hidden turn, a summary or a notice of ours."""
    replies, numbers = replies_of(store, conversation_id, hidden), {summary.number for summary in summaries}
    limit = len(replies) + len(numbers) + FEW
    while True:
        newest = store.messages(conversation_id, limit=limit)
        found = [one for one in newest if one.message.id not in replies and one.sequence not in numbers]
        told = [one for one in found if not _is_notice(one.message)]
        if told or len(newest) < limit:
            return max(told or found, key=lambda one: one.sequence, default=None)
        limit *= 2


def _is_notice(message: ConversationMessage) -> bool:
    """Return whether bullpen only told something: how much of a budget is used, or who stands in for whom."""
    routing = message.routing
    is_about_nothing = routing is None or not (routing.resolved_addressees or routing.parent_message_id)
    return message.speaker.type == "system" and is_about_nothing
