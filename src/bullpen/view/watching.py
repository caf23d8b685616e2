"""Watching a conversation that another process runs: its messages and its state as they appear in the store."""

import time
from collections.abc import Callable, Iterator

from bullpen.store.base import Store
from bullpen.view.messages import ShownMessage, plain_messages
from bullpen.view.state import ConversationView, stored_view

SECONDS_BETWEEN_LOOKS = 0.25
PAGE = 100


def watch(
    store: Store,
    conversation_id: str,
    *,
    after: int,
    wait: Callable[[], None] = lambda: time.sleep(SECONDS_BETWEEN_LOOKS),
) -> Iterator[ShownMessage | ConversationView]:
    """Yield messages after a number, and the conversation whenever it has changed, until no process runs it."""
    before: ConversationView | None = None
    while True:
        # The state first: a message that comes in between is there at the next look, and the last one is not missed.
        view = stored_view(store, conversation_id)
        while messages := plain_messages(store, conversation_id, after=after, limit=PAGE):
            yield from messages
            after = messages[-1].sequence
        if view != before:
            yield view
            before = view
        if not view.is_owned:
            return
        wait()
