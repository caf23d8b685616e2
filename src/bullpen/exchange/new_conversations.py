"""A conversation that is made of messages from elsewhere: complete, or not there at all."""

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from bullpen.errors import ConversationExists, NotTheOwner, StoreError
from bullpen.messages import ConversationMessage
from bullpen.store.base import StateChange, Store

STORED_AT_ONCE = 500
"""Messages in one transaction: others write to the same file, and wait for it."""
PAUSE = 0.5
"""How long others may write then, as a part of the time that it took: without it, some would wait very long."""


@contextmanager
def new_conversation(store: Store, kind: str, *, started_at: int, unfinished: str, **about: Any) -> Iterator[str]:
    """Create a conversation and give its id to the block that fills it; if that fails, it is deleted.

    If we are killed meanwhile, `unfinished` tells people that it is incomplete.
    """
    conversation_id = _created(store, kind, started_at=started_at, **about)
    try:
        store.update(conversation_id, at=started_at, change=StateChange(paused=unfinished))
        yield conversation_id
    except BaseException:
        # Who has opened it meanwhile keeps what there is of it, and is told that it is not all.
        with suppress(StoreError, NotTheOwner):
            store.delete(conversation_id, at=started_at)
        raise


def fill(store: Store, conversation_id: str, messages: Iterable[ConversationMessage]) -> None:
    """Store messages in their order, some at a time."""
    left = iter(messages)
    while some := list(islice(left, STORED_AT_ONCE)):
        began = time.perf_counter()
        store.extend(conversation_id, some)
        if len(some) == STORED_AT_ONCE:
            time.sleep(PAUSE * (time.perf_counter() - began))


def _created(store: Store, kind: str, **about: Any) -> str:
    while True:
        conversation_id = f"{kind}-{secrets.token_hex(3)}"
        try:
            store.create(conversation_id, **about)
        except ConversationExists:
            continue
        return conversation_id
