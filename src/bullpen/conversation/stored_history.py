"""StoredHistory: the history of a conversation that is kept in a store, for its ContextManager."""

from collections.abc import Sequence

from bullpen.context.history import Envelope, envelope_of
from bullpen.context.views import View
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store

MOST_IDS = 10_000
"""Ids that are remembered: a prompt's report names every message in it."""
READ_AT_ONCE = 64
"""Messages that are read at once: prompts ask for one after the other, from the newest on."""


class StoredHistory:
    """Reads messages when they are asked for. The store has them before they are appended here.

    Everything but `append` and `len` reads the store, so it belongs in the store's thread.
    """

    def __init__(self, store: Store, conversation_id: str, *, messages: int, highest_number: int) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._count = messages
        self._highest_number = highest_number
        self._newest: ConversationMessage | None = None
        self._ready: dict[int, ConversationMessage] = {}
        self._ids: dict[int, str] = {}

    def __len__(self) -> int:
        return self._count

    def append(self, message: ConversationMessage) -> None:
        """Count a message that has just been stored."""
        self._newest = message
        self._count += 1

    def message(self, position: int) -> ConversationMessage:
        """Return the message at a position; -1 is the last."""
        if position < 0:
            position += self._count
        if self._newest is not None and position == self._count - 1:
            return self._newest
        if position not in self._ready:
            self.preload(max(0, position - READ_AT_ONCE + 1), position)
        return self._ready[position]

    def id_at(self, position: int) -> str:
        """Return the id of the message at a position."""
        return self._ids.get(position) or self.message(position).id

    def position_of(self, message_id: str) -> int:
        """Return where a message is, or raise UnknownMessage."""
        if self._newest is not None and self._newest.id == message_id:
            return self._count - 1
        return self._store.message(self._conversation_id, message_id).sequence - 1

    def messages(self) -> Sequence[ConversationMessage]:
        """Return the messages as they are now; each is read when it is looked at."""
        return View(range(self._count), self.message)

    def preload(self, first: int, last: int) -> None:
        """Read the messages between two positions, at most READ_AT_ONCE, the newest."""
        first = max(first, last - READ_AT_ONCE + 1)
        if not all(position in self._ready for position in range(first, last + 1)):
            read = self._store.messages(self._conversation_id, after=first, before=last + 2)
            self._ready = {stored.sequence - 1: stored.message for stored in read}
            if len(self._ids) > MOST_IDS:
                self._ids.clear()
            self._ids.update({position: message.id for position, message in self._ready.items()})

    def envelopes(self, first: int, last: int) -> Sequence[Envelope]:
        """Return who said the messages from one position up to another, and to whom."""
        if last <= first:
            return []
        stored = self._store.envelopes(self._conversation_id, after=first, before=last + 1)
        # A preview's newest message is not in the store.
        if len(stored) < last - first and self._newest is not None:
            stored.append(envelope_of(self._newest))
        return stored

    def names_of(self, speaker_id: str) -> set[str]:
        """Return every name that somebody has spoken under."""
        speakers = self._store.speakers(self._conversation_id)
        return {speaker.role_name for speaker in speakers if speaker.role_id == speaker_id}

    def highest_number(self) -> int:
        """Return the highest N of all ids msg-N, or 0."""
        return self._highest_number
