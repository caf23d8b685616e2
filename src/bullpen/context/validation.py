"""Checks of a message before it enters a conversation."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from bullpen.messages import SPEAKER_TYPES, ConversationMessage, MessageDraft, Routing, Speaker
from bullpen.text.clean import clean_text


def check_message(message: MessageDraft | ConversationMessage) -> None:
    """Raise TypeError, in the specification's words, unless the message has text and a speaker."""
    if message is None:
        raise TypeError("Message cannot be null or undefined")
    if not isinstance(message, MessageDraft | ConversationMessage):
        raise TypeError(f"Message must be a MessageDraft, not {type(message).__name__}")
    if not isinstance(message.content, str):
        raise TypeError("Message content must be a string")
    if not message.speaker:
        raise TypeError("Message speaker is required")
    _check_speaker(message.speaker)
    if message.routing is not None:
        _check_routing(message.routing)
    if message.extra is not None:
        _check_extra(message.extra)


def _check_speaker(speaker: Speaker) -> None:
    if not isinstance(speaker, Speaker):
        raise TypeError(f"Message speaker must be a Speaker, not {type(speaker).__name__}")
    if not speaker.role_id:
        raise TypeError("Message speaker.roleId is required")
    if not isinstance(speaker.role_id, str) or not isinstance(speaker.role_name, str):
        raise TypeError("Message speaker.roleId and speaker.roleName must be strings")
    if speaker.role_title is not None and not isinstance(speaker.role_title, str):
        raise TypeError("Message speaker.roleTitle must be a string")
    if speaker.type not in SPEAKER_TYPES:
        raise TypeError(f"Message speaker.type must be one of {', '.join(SPEAKER_TYPES)}, not {speaker.type!r}")


def _check_routing(routing: Routing) -> None:
    if not isinstance(routing, Routing):
        raise TypeError(f"Message routing must be a Routing, not {type(routing).__name__}")
    lists = {
        "resolvedAddressees": routing.resolved_addressees,
        "rawNextMarkers": routing.raw_next_markers,
        "dropTargets": routing.drop_targets,
    }
    for field, names in lists.items():
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"Message routing.{field} must be a list of strings")
    for text in (routing.parent_message_id, routing.intent):
        if text is not None and not isinstance(text, str):
            raise TypeError("Message routing.parentMessageId and routing.intent must be strings")


def _check_extra(extra: object) -> None:
    """Raise TypeError for fields that would replace ours when the message is written as JSON."""
    if not isinstance(extra, Mapping):
        raise TypeError("Message extra must be a mapping")
    ours = {*ConversationMessage.__struct_encode_fields__} - {"speaker", "routing"}
    for name in ours & extra.keys():
        raise TypeError(f"Message extra must not have a field {name!r}, which every message has")


Value = TypeVar("Value", Speaker, Routing)


def clean_strings(value: Value) -> Value:
    """Return the value with all its texts cleaned."""
    clean = {name: _clean(field) for name, field in msgspec.structs.asdict(value).items()}
    return value if clean == msgspec.structs.asdict(value) else msgspec.structs.replace(value, **clean)


def _clean(field: object) -> object:
    if isinstance(field, tuple):
        return tuple(map(_clean, field))
    return clean_text(field) if isinstance(field, str) else field


def milliseconds(timestamp: int | float | str | datetime) -> int:
    """Return a time as milliseconds since 1970; text is read as ISO 8601, which is how JavaScript writes a Date."""
    if type(timestamp) is int:
        return timestamp
    if isinstance(timestamp, str):
        timestamp = datetime.fromisoformat(timestamp)
    if isinstance(timestamp, datetime):
        return round(timestamp.timestamp() * 1000)
    if isinstance(timestamp, bool) or not isinstance(timestamp, int | float):
        raise TypeError(f"Message timestamp must be milliseconds, not {type(timestamp).__name__}")
    return int(timestamp)
