"""Conversations in a list, as people look for them: all of them, by a name, by what was said in them."""

from msgspec import Struct

from bullpen.conversation.owner import is_alive
from bullpen.errors import AmbiguousConversation, NoConversations, UnknownConversation
from bullpen.messages import Speaker
from bullpen.store.base import Store, StoredConversation

LAST = "last"


class ConversationSummary(Struct, frozen=True, kw_only=True):
    """One conversation in a list."""

    id: str
    team: str
    team_path: str
    """Where its team file is; empty if it was not a file."""
    state: str
    started_at: int
    last_at: int
    messages: int
    first_words: str
    queued: int
    running: int
    """How many turns are waiting, and how many are running."""
    waits_for: str | None
    """The person whose message is awaited."""
    paused: str | None
    task: str | None
    open_in: int | None
    """The number of the process that has it open."""


class Hit(Struct, frozen=True, kw_only=True):
    """A message that a search found."""

    conversation: str
    sequence: int
    speaker: str
    timestamp: int
    snippet: str
    message_id: str
    said_by: Speaker


def all_conversations(store: Store) -> list[ConversationSummary]:
    """Return every conversation, the latest first."""
    return [_summary(stored) for stored in store.conversations()]


def conversation_summary(store: Store, conversation_id: str) -> ConversationSummary:
    """Return one conversation, or raise UnknownConversation."""
    return _summary(store.conversation(conversation_id))


def find_conversation(store: Store, reference: str) -> ConversationSummary:
    """Return the conversation with an id, or the only one whose id begins so, or the latest for "last"."""
    try:
        return conversation_summary(store, reference)
    except UnknownConversation:
        known = store.conversations()
    if not known:
        raise NoConversations
    if reference == LAST:
        return _summary(known[0])
    fitting = [stored for stored in known if reference and stored.id.startswith(reference)]
    if not fitting:
        raise UnknownConversation(reference)
    if len(fitting) > 1:
        raise AmbiguousConversation(reference, (stored.id for stored in fitting))
    return _summary(fitting[0])


def search(store: Store, words: str, *, conversation_id: str | None = None, limit: int = 20) -> list[Hit]:
    """Return the newest messages that have all of these words, in one conversation or in all."""
    if not words.strip():
        return []
    return [
        Hit(
            conversation=found.conversation_id,
            sequence=found.sequence,
            speaker=found.speaker.role_name,
            timestamp=found.timestamp,
            snippet=found.snippet,
            message_id=found.message_id,
            said_by=found.speaker,
        )
        for found in store.search(words, conversation_id=conversation_id, limit=limit)
    ]


def search_in(store: Store, conversation_id: str, words: str, limit: int = 20) -> list[Hit]:
    """Do the same for Conversation.read."""
    return search(store, words, conversation_id=conversation_id, limit=limit)


def _summary(stored: StoredConversation) -> ConversationSummary:
    owner = stored.owner
    return ConversationSummary(
        id=stored.id,
        team=stored.team,
        team_path=stored.team_path,
        state=stored.state,
        started_at=stored.started_at,
        last_at=stored.last_at,
        messages=stored.messages,
        first_words=stored.first_words,
        queued=stored.queued,
        running=stored.running,
        waits_for=stored.waits_for,
        paused=stored.paused,
        task=stored.team_task,
        open_in=owner.pid if owner is not None and is_alive(owner) else None,
    )
