"""Which process owns a conversation: only that one runs its turns, and only that one writes."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Literal

from bullpen.agents import process_tree
from bullpen.agents.crash_records import end_leftover_processes
from bullpen.agents.process_tree import end_all_running
from bullpen.clock import milliseconds, pause, sleep
from bullpen.errors import ConversationInUse, UnknownConversation
from bullpen.store.base import Owner, Store
from bullpen.store.thread import Desk

BEAT_SECONDS = 5.0
"""How often an owner says that it is alive."""
NODE_BEAT_SECONDS = 60.0
"""How often that of a node does: the node itself says much oftener that it is alive, for all that it owns."""
LOST_SECONDS = 30.0
"""Who was seen in this time is alive, as far as those can tell who cannot see its lock or its process."""
WATCH_SECONDS = 2.5 * BEAT_SECONDS
"""How long to look whether an owner on another machine says anything, for its clock may differ from ours."""

Life = Literal["alive", "dead", "unknown"]


def this_process(node: int = 0) -> Owner:
    """Return this process as an owner, with a new token for every conversation it opens; `node` as in Owner."""
    identity = process_tree.process_id(os.getpid())
    return Owner(
        token=os.urandom(8).hex(),
        pid=os.getpid(),
        start_time=identity.start_time if identity else 0,
        boot_id=process_tree.boot_id(),
        host=platform.node(),
        seen_at=milliseconds(),
        node=node,
    )


def life_of(owner: Owner, store: Store) -> Life:
    """Return whether an owner is still running, as far as this machine's kernel knows.

    Its lock says so for certain; that of a node is seen by all machines. Where it is on another machine, or its file
    system has no locks, nothing is known.
    """
    is_locked = store.is_locked(owner)
    if is_locked:
        return "alive"
    if is_locked is False and owner.node:
        return "dead"
    if not _is_on_this_machine(owner):
        return "unknown"
    if is_locked is False:
        # It has let go of its lock, and could not write that it is the owner no more. Its process may live.
        return "dead"
    if process_tree.is_alive(process_tree.ProcessId(owner.pid, owner.start_time)):
        return "alive"
    # An owner without a lock may be in a pid namespace that we cannot see; one of an earlier bullpen is never seen.
    return "unknown" if owner.seen_at else "dead"


def is_alive(owner: Owner, store: Store) -> bool:
    """Return whether an owner is still running; if nobody can know, whether it was seen lately."""
    life = life_of(owner, store)
    return _was_seen_lately(owner) if life == "unknown" else life == "alive"


async def claim(store: Store, thread: Desk, conversation_id: str, owner: Owner) -> int:
    """Become the owner of a conversation, or raise ConversationInUse. Return when an owner was last seen.

    An owner of whom nothing is known is watched for a while: it is dead if it says nothing.
    """
    before, seconds = await thread.do(look, store, conversation_id)
    if seconds:
        await sleep(seconds)
    await thread.do(_take, store, conversation_id, owner, before)
    return (before or owner).seen_at


@contextmanager
def owned(store: Store, conversation_id: str) -> Iterator[Owner]:
    """Do the same for a moment, where nobody else needs the thread. A conversation may be deleted meanwhile."""
    # Their agents may still edit what is about to be put back or removed.
    end_leftover_processes()
    owner = this_process()
    before, seconds = look(store, conversation_id)
    pause(seconds)
    _take(store, conversation_id, owner, before)
    try:
        yield owner
    finally:
        with suppress(UnknownConversation):
            store.release(conversation_id, owner)


def look(store: Store, conversation_id: str) -> tuple[Owner | None, float]:
    """Return who owns a conversation, and for how many seconds to watch it before it can be called dead."""
    before = store.conversation(conversation_id).owner
    must_be_watched = before is not None and _must_be_watched(before, store)
    return before, WATCH_SECONDS if must_be_watched else 0.0


def check_not_open(store: Store, conversation_id: str, before: Owner | None) -> None:
    """Raise ConversationInUse if an owner is alive, or has said something since it was looked at."""
    other = store.conversation(conversation_id).owner
    if other is not None and _lives(other, before, store):
        raise ConversationInUse(conversation_id, other.pid, other.host)


def _take(store: Store, conversation_id: str, owner: Owner, before: Owner | None) -> None:
    if not store.claim(conversation_id, owner, is_alive=partial(_lives, before=before, store=store)):
        other = store.conversation(conversation_id).owner
        raise ConversationInUse(conversation_id, other.pid if other else 0, other.host if other else "")


def _lives(owner: Owner, before: Owner | None, store: Store) -> bool:
    return is_alive(owner, store) or (life_of(owner, store) == "unknown" and owner != before)


def end_running_agents() -> None:
    """Kill every program that this process runs. The next start says which turns were interrupted."""
    end_all_running()


def _is_on_this_machine(owner: Owner) -> bool:
    boots = owner.boot_id, process_tree.boot_id()
    # Where a boot has no id, the machine's name must do.
    return boots[0] == boots[1] if all(boots) else owner.host in ("", platform.node())


def _must_be_watched(owner: Owner, store: Store) -> bool:
    return life_of(owner, store) == "unknown" and not _was_seen_lately(owner) and not _ended_with_the_last_boot(owner)


def _was_seen_lately(owner: Owner) -> bool:
    return abs(milliseconds() - owner.seen_at) < LOST_SECONDS * 1000


def _ended_with_the_last_boot(owner: Owner) -> bool:
    """Return whether an owner was on this machine before it was started again."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return False
    booted_at = milliseconds() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    return owner.host == platform.node() and owner.seen_at < booted_at
