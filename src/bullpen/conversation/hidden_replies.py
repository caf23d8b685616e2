"""Replies that an agent may not see yet: of others who do the same task."""

from collections.abc import Collection

from bullpen.routing.summaries import Summary
from bullpen.store.base import Store, StoredMessage


def replies_of(store: Store, conversation_id: str, turns: Collection[str]) -> list[str]:
    """Return the ids of what turns have replied."""
    replies = (store.turn(conversation_id, turn_id).reply_id for turn_id in sorted(turns))
    return [reply for reply in replies if reply is not None]


def last_visible(
    store: Store, conversation_id: str, hidden: Collection[str], summaries: Collection[Summary] = ()
) -> StoredMessage | None:
    """Return the last message that is neither the reply of a hidden turn nor a summary, which answers nobody."""
    replies, numbers = replies_of(store, conversation_id, hidden), {summary.number for summary in summaries}
    newest = store.messages(conversation_id, limit=len(replies) + len(numbers) + 1)
    return max(
        (stored for stored in newest if stored.message.id not in replies and stored.sequence not in numbers),
        key=lambda one: one.sequence,
        default=None,
    )
