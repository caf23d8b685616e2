"""Mending a conversation that is stuck, while no process has it open."""

from bullpen.conversation.owner import owned
from bullpen.store.base import Finding, Store


def repair(store: Store, conversation_id: str) -> list[Finding]:
    """Own a conversation for a moment, mend what is stuck in it, and return what that was."""
    with owned(store, conversation_id) as owner:
        return store.repair(conversation_id, owner=owner)
