"""What people decided in a conversation besides speaking, and who did."""

from bullpen.store.base import Decision, Store

__all__ = ["Decision", "decisions_in"]


def decisions_in(store: Store, conversation_id: str) -> list[Decision]:
    """Return every decision, oldest first."""
    return store.decisions(conversation_id)
