"""Messages as a door shows them: each with its place, and the turn that it ended."""

from msgspec import Struct

from bullpen.messages import ConversationMessage
from bullpen.store.base import Store, StoredMessage
from bullpen.view.turn_lookup import turn_that_said

PAGE = 50


class ShownMessage(Struct, frozen=True, kw_only=True):
    """A message in its conversation."""

    sequence: int
    """1 is the first."""
    message: ConversationMessage
    turn: str | None = None
    """The turn that ended with it, if an agent said it."""


def shown_messages(
    store: Store, conversation_id: str, *, before: int | None = None, after: int | None = None, limit: int = PAGE
) -> list[ShownMessage]:
    """Return messages with their turns, oldest first: the newest ones, those before a number, or the first after it."""
    stored = store.messages(conversation_id, before=before, after=after, limit=limit)
    return [_shown(store, conversation_id, one) for one in stored]


def plain_messages(
    store: Store, conversation_id: str, *, before: int | None = None, after: int | None = None, limit: int = PAGE
) -> list[ShownMessage]:
    """Return the same without their turns, which take longer to find."""
    stored = store.messages(conversation_id, before=before, after=after, limit=limit)
    return [ShownMessage(sequence=one.sequence, message=one.message) for one in stored]


def _shown(store: Store, conversation_id: str, stored: StoredMessage) -> ShownMessage:
    turn = turn_that_said(store, conversation_id, stored.message)
    return ShownMessage(sequence=stored.sequence, message=stored.message, turn=None if turn is None else turn.id)
