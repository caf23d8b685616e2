"""The messages of a conversation: speaker, content and addressees.

None of these can be part of a cycle, so the garbage collector can skip them (gc=False): there may be millions.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

SpeakerType = Literal["human", "ai", "system"]
SPEAKER_TYPES: tuple[SpeakerType, ...] = ("human", "ai", "system")


class Speaker(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Who sent a message."""

    role_id: str
    role_name: str
    type: SpeakerType
    role_title: str | None = None


class Routing(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Who a message is addressed to, and the markers in it."""

    resolved_addressees: tuple[str, ...] = ()
    """Names; empty means everyone."""
    raw_next_markers: tuple[str, ...] = ()
    drop_targets: tuple[str, ...] = ()
    parent_message_id: str | None = None
    """The message that caused this one."""
    intent: str | None = None


class MessageDraft(Struct, frozen=True, kw_only=True, gc=False):
    """A message that is not stored yet, so it has no id."""

    content: str
    speaker: Speaker
    routing: Routing | None = None
    timestamp: int | None = None
    """Milliseconds since 1970; None means now."""
    extra: Mapping[str, Any] | None = None
    """Fields of other systems, kept as JSON. Those of the speaker and the routing are under these names."""


class ConversationMessage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One stored message."""

    id: str
    content: str
    speaker: Speaker
    timestamp: int = 0
    """Milliseconds since 1970."""
    routing: Routing | None = None
    extra: Mapping[str, Any] | None = None
    """Fields of other systems, kept as JSON. Those of the speaker and the routing are under these names."""
