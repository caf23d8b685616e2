"""The words of a conversation: who speaks, what is said, and to whom.

None of these can be part of a cycle, so the garbage collector need not look at them (gc=False): there may be millions.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

SpeakerType = Literal["human", "ai", "system"]
SPEAKER_TYPES: tuple[SpeakerType, ...] = ("human", "ai", "system")


class Speaker(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Who said something."""

    role_id: str
    role_name: str
    type: SpeakerType
    role_title: str | None = None


class Routing(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """To whom a message went, and what its author wrote to send it there."""

    resolved_addressees: tuple[str, ...] = ()
    """Names; empty means everyone."""
    raw_next_markers: tuple[str, ...] = ()
    drop_targets: tuple[str, ...] = ()
    parent_message_id: str | None = None
    """The message that caused this one."""
    intent: str | None = None


class MessageDraft(Struct, frozen=True, kw_only=True, gc=False):
    """A message that is not recorded yet, so it has no id."""

    content: str
    speaker: Speaker
    routing: Routing | None = None
    timestamp: int | None = None
    """Milliseconds since 1970; None means now."""
    extra: Mapping[str, Any] | None = None
    """Fields of other systems, kept as they are: JSON. Those of speaker and routing are under these names."""


class ConversationMessage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One thing said, as it was said."""

    id: str
    content: str
    speaker: Speaker
    timestamp: int = 0
    """Milliseconds since 1970."""
    routing: Routing | None = None
    extra: Mapping[str, Any] | None = None
    """Fields of other systems, kept as they are: JSON. Those of speaker and routing are under these names."""
