"""A conversation that is made of messages from elsewhere: complete, or not there at all."""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.errors import ConversationExists, NotTheOwner, StoreError
from bullpen.file_changes import ChangeRecord
from bullpen.messages import ConversationMessage
from bullpen.store.base import StateChange, Store

Item = TypeVar("Item")

STORED_AT_ONCE = 500
"""Messages in one transaction: others write to the same file, and wait for it."""
CHANGES_AT_ONCE = 20
"""Records in one transaction: each may have a megabyte."""
CHECKS_AT_ONCE = 100
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
    _store_in_parts(messages, STORED_AT_ONCE, lambda some: store.extend(conversation_id, some))


def fill_changes(store: Store, conversation_id: str, records: Iterable[ChangeRecord]) -> None:
    """Store what changed between the messages, under the same numbers, some at a time."""
    _store_in_parts(records, CHANGES_AT_ONCE, lambda some: store.copy_changes(conversation_id, some))


def fill_checks(store: Store, conversation_id: str, results: Iterable[CheckResult]) -> None:
    """Store what checks said between the messages, under the same numbers, some at a time."""
    _store_in_parts(results, CHECKS_AT_ONCE, lambda some: store.copy_checks(conversation_id, some))


def fill_approvals(store: Store, conversation_id: str, records: Iterable[ApprovalRecord]) -> None:
    """Store what was asked and answered between the messages, under the same numbers, some at a time."""
    _store_in_parts(records, CHECKS_AT_ONCE, lambda some: store.copy_approvals(conversation_id, some))


def _store_in_parts(items: Iterable[Item], most: int, store_some: Callable[[Sequence[Item]], None]) -> None:
    left = iter(items)
    while some := list(islice(left, most)):
        began = time.perf_counter()
        store_some(some)
        if len(some) == most:
            time.sleep(PAUSE * (time.perf_counter() - began))


def _created(store: Store, kind: str, **about: Any) -> str:
    while True:
        conversation_id = f"{kind}-{secrets.token_hex(3)}"
        try:
            store.create(conversation_id, **about)
        except ConversationExists:
            continue
        return conversation_id
