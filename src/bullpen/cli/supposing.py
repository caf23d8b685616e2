"""SupposingStore: a store as it would be if one more thing had been said. Nothing of that is written."""

from bullpen.messages import ConversationMessage
from bullpen.store.base import StoredMessage, Turn
from bullpen.store.sqlite import SqliteStore


class SupposingStore(SqliteStore):
    """Shows a message behind all others that is not stored."""

    supposed: ConversationMessage | None = None

    def message(self, conversation_id: str, message_id: str) -> StoredMessage:
        """Return one message."""
        supposed = self.supposed
        if supposed is not None and supposed.id == message_id:
            newest = super().messages(conversation_id, limit=1)
            return StoredMessage(sequence=newest[0].sequence + 1 if newest else 1, message=supposed, hash=b"")
        return super().message(conversation_id, message_id)

    def messages(
        self, conversation_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return the messages, and behind the newest ones the one that is supposed."""
        stored = super().messages(conversation_id, after=after, before=before, limit=limit)
        if self.supposed is None or after is not None or before is not None:
            return stored
        both = [*stored, self.message(conversation_id, self.supposed.id)]
        return both if limit is None else both[-limit:]

    def turns(self, conversation_id: str, *, message_id: str | None = None) -> list[Turn]:
        """Return the turns; what is only supposed has asked nobody."""
        if self.supposed is not None and self.supposed.id == message_id:
            return []
        return super().turns(conversation_id, message_id=message_id)
