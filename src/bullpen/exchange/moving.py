"""Conversations copied from one store to another, each whole and compared, or not at all. Nothing is taken away."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from msgspec import Struct

from bullpen.conversation.owner import owned
from bullpen.errors import ConversationDiffers, ConversationExists, StoreDamaged, StoreReadOnly, UnknownConversation
from bullpen.store.transfer import Transferable, digest_of


class Moved(Struct, frozen=True, kw_only=True):
    """What became of a conversation."""

    id: str
    messages: int
    was_there: bool
    """Whether exactly this conversation was there already."""


def move(source: Transferable, target: Transferable, conversation_ids: Sequence[str] = ()) -> Iterator[Moved]:
    """Copy these conversations, or all of them, one after the other. Nobody may write in one meanwhile."""
    for conversation_id in conversation_ids or [one.id for one in reversed(source.conversations())]:
        with _kept_still(source, conversation_id):
            _check_sound(source, conversation_id)
            was_there = not _copy(source, target, conversation_id)
            _check_sound(target, conversation_id)
        yield Moved(id=conversation_id, messages=target.conversation(conversation_id).messages, was_there=was_there)


def _copy(source: Transferable, target: Transferable, conversation_id: str) -> bool:
    """Copy a conversation, and return whether it was not there already; or raise ConversationDiffers."""
    # One in which nothing was ever said may be replaced.
    with suppress(UnknownConversation):
        target.discard(conversation_id)
    try:
        with source.copying_out(conversation_id) as copied:
            target.copy_in(copied)
    except ConversationExists:
        # Perhaps an earlier move was cut off after it.
        if not _is_same(source, target, conversation_id):
            raise ConversationDiffers(conversation_id, target.path) from None
        return False
    return True


def _is_same(source: Transferable, target: Transferable, conversation_id: str) -> bool:
    try:
        with source.copying_out(conversation_id) as one, target.copying_out(conversation_id) as other:
            return digest_of(one) == digest_of(other)
    except UnknownConversation:
        # It was deleted there.
        return False


def _check_sound(store: Transferable, conversation_id: str) -> None:
    """Raise StoreDamaged if anything in a conversation is not as it was written."""
    for finding in store.fsck(conversation_id):
        if finding.kind != "stuck":
            reason = f"conversation {conversation_id!r}: {finding.text}"
            raise StoreDamaged(store.path, reason, "It was not copied, and nothing more is. `bullpen fsck` says more.")


@contextmanager
def _kept_still(source: Transferable, conversation_id: str) -> Iterator[None]:
    """Own a conversation for a moment, so that nobody else writes; nobody can if its file cannot be written."""
    with ExitStack() as owning:
        with suppress(StoreReadOnly):
            owning.enter_context(owned(source, conversation_id))
        yield
