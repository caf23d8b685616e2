"""What people decided in a conversation besides speaking, and who did."""

from bullpen.store.base import Decision, Store
from bullpen.text.numbers import local_time

__all__ = ["Decision", "decision_sentence", "decisions_about", "decisions_in"]


def decisions_in(store: Store, conversation_id: str) -> list[Decision]:
    """Return every decision, oldest first."""
    return store.decisions(conversation_id)


def decisions_about(store: Store, conversation_id: str, turn_id: str) -> tuple[Decision, ...]:
    """Return the decisions about one turn, oldest first."""
    return tuple(decision for decision in store.decisions(conversation_id) if turn_id in decision.turns)


def decision_sentence(decision: Decision) -> str:
    """Return who decided what, and when."""
    return f"{decision.person}: {decision.choice}, {local_time(decision.at, seconds=True)}"
