"""Mending a conversation that is stuck, while no process has it open."""

from functools import partial

from bullpen.conversation.owner import is_alive, this_process
from bullpen.errors import ConversationInUse
from bullpen.store.base import Finding, Store


def repair(store: Store, conversation_id: str) -> list[Finding]:
    """Own a conversation for a moment, mend what is stuck in it, and return what that was."""
    owner = this_process()
    if not store.claim(conversation_id, owner, is_alive=partial(is_alive, store=store)):
        other = store.conversation(conversation_id).owner
        raise ConversationInUse(conversation_id, other.pid if other else 0, other.host if other else "")
    try:
        return store.repair(conversation_id, owner=owner)
    finally:
        store.release(conversation_id, owner)
