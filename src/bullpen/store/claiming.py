"""Becoming the owner of a conversation: the same in every store, regardless of its locks."""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from bullpen.errors import StoreError, UnknownConversation
from bullpen.store.base import IsAlive, Owner


class Locks(Protocol):
    """Locks that the system frees when the process of their owner dies."""

    def hold(self, token: str) -> object:
        """Lock for an owner, where that is possible."""

    def let_go(self, token: str) -> None:
        """Unlock. The owner may still be stored as one."""

    def remove(self, token: str) -> None:
        """Unlock, and leave no trace of an owner that is not stored as one."""


def claim(
    locks: Locks,
    owner: Owner,
    *,
    is_alive: IsAlive,
    present: Callable[[], Owner | None],
    become: Callable[[Owner | None], bool],
) -> bool:
    """Become the owner, unless another owner is alive.

    `present` returns who owns it now; `become` stores the new owner if that is still the one that it is given, who is
    then called dead.
    """
    before = present()
    is_other = before is not None and before.token != owner.token
    if before is not None and is_other and is_alive(before):
        return False
    # Before anybody can read who owns it: an owner whose lock is not held is dead.
    locks.hold(owner.token)
    try:
        is_ours = become(before)
    except BaseException:
        _give_up(locks, owner, present)
        raise
    if not is_ours:
        locks.remove(owner.token)
    elif before is not None and is_other:
        locks.remove(before.token)
    return is_ours


def _give_up(locks: Locks, owner: Owner, present: Callable[[], Owner | None]) -> None:
    """After an error, leave nothing of an owner, unless it may be stored: then a free lock says that it is dead."""
    locks.let_go(owner.token)
    with suppress(StoreError, UnknownConversation):
        other = present()
        if other is None or other.token != owner.token:
            locks.remove(owner.token)
