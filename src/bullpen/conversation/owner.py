"""Which process owns a conversation: only that one runs its turns."""

import os

from bullpen.agents import process_tree
from bullpen.agents.process_tree import end_all_running
from bullpen.store.base import Owner


def this_process() -> Owner:
    """Return this process as an owner, with a new token for every conversation it opens."""
    identity = process_tree.process_id(os.getpid())
    start_time = identity.start_time if identity else 0
    return Owner(token=os.urandom(8).hex(), pid=os.getpid(), start_time=start_time, boot_id=process_tree.boot_id())


def is_alive(owner: Owner) -> bool:
    """Return whether an owner is still running, and is not another process with the same number."""
    same_boot = owner.boot_id == process_tree.boot_id()
    return same_boot and process_tree.is_alive(process_tree.ProcessId(owner.pid, owner.start_time))


def end_running_agents() -> None:
    """Kill every program that this process runs. The next start says which turns were interrupted."""
    end_all_running()
