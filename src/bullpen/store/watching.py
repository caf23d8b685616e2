"""Following a conversation that another process runs: its messages and its state as they appear in the store."""

import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from bullpen.store.base import Activity, IsAlive, Store, StoredMessage

SECONDS_BETWEEN_LOOKS = 0.25
PAGE = 100


class Standing(Struct, frozen=True, kw_only=True):
    """How a conversation stands, as far as another process can see."""

    state: Activity
    at_work: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    waits_for: str | None = None
    paused: str | None = None
    is_owned: bool = True
    """Whether a process runs it."""


def follow(
    store: Store,
    conversation_id: str,
    *,
    after: int,
    is_alive: IsAlive,
    wait: Callable[[], None] = lambda: time.sleep(SECONDS_BETWEEN_LOOKS),
) -> Iterator[StoredMessage | Standing]:
    """Yield messages after a number, and how the conversation stands whenever that changes, until nobody runs it."""
    before: Standing | None = None
    while True:
        # The state first: a message that comes in between is there at the next look, and the last one is not missed.
        standing = _standing(store, conversation_id, is_alive)
        while messages := store.messages(conversation_id, after=after, limit=PAGE):
            yield from messages
            after = messages[-1].sequence
        if standing != before:
            yield standing
            before = standing
        if not standing.is_owned:
            return
        wait()


def _standing(store: Store, conversation_id: str, is_alive: IsAlive) -> Standing:
    conversation = store.conversation(conversation_id)
    return Standing(
        state=conversation.state,
        at_work=tuple(turn.member for turn in store.running(conversation_id)),
        waiting=tuple(turn.member for turn in store.queued(conversation_id)),
        waits_for=conversation.waits_for,
        paused=conversation.paused,
        is_owned=conversation.owner is not None and is_alive(conversation.owner),
    )
