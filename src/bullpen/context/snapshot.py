"""The state of a conversation as JSON: our format, and that of agent-chatter, an earlier chat for agents."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.context.history import MemoryHistory, Messages, Row, packed, packed_extra
from bullpen.context.validation import check_message, clean_strings, milliseconds
from bullpen.errors import InvalidSnapshot
from bullpen.messages import ConversationMessage, Routing, Speaker, SpeakerType
from bullpen.text.clean import clean_json, clean_text

VERSION = 1
EXPORT_FORMAT = "bullpen conversation"
"""What `sessions export` writes: a snapshot with more fields, and a hash for every message."""
EXPORT_FIELDS = ("format", "conversation", "turns")
MESSAGE_FIELDS = ("sequence", "hash")
SET_APART = "foreign"
"""Where an export keeps fields from other systems that have the same names."""


class ContextSnapshot(Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of a ContextManager at one moment."""

    messages: Sequence[ConversationMessage]
    team_task: str | None = None
    timestamp: int = 0
    """When it was taken, in milliseconds since 1970."""
    version: int = VERSION
    extra: Mapping[str, Any] | None = None
    """Fields from other systems, kept unchanged."""

    def to_json(self) -> bytes:
        """Return the snapshot with the specification's names, and with the fields from other systems."""
        fields = {**(self.extra or {}), **_fields(self, _FIELDS), "messages": _messages_as_json(self.messages)}
        return msgspec.json.encode(fields)

    @classmethod
    def from_json(cls, data: bytes | str) -> "ContextSnapshot":
        """Return the snapshot that to_json, or agent-chatter, wrote."""
        try:
            return _snapshot(_decode(data))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidSnapshot(str(error)) from error


def history_of(snapshot: ContextSnapshot) -> MemoryHistory:
    """Return the messages of a snapshot as a history, or raise InvalidSnapshot."""
    if not isinstance(snapshot, ContextSnapshot):
        raise InvalidSnapshot(f"expected a ContextSnapshot, got {type(snapshot).__name__}")
    if snapshot.version != VERSION:
        raise InvalidSnapshot(f"version {snapshot.version!r} is not {VERSION}")
    if snapshot.team_task is not None and not isinstance(snapshot.team_task, str):
        raise InvalidSnapshot("teamTask must be a string or null")
    if isinstance(snapshot.messages, Messages):
        return MemoryHistory(snapshot.messages.rows)
    try:
        return _checked_history(snapshot)
    except TypeError as error:
        raise InvalidSnapshot(str(error)) from error


def _checked_history(snapshot: ContextSnapshot) -> MemoryHistory:
    history = MemoryHistory()
    for message in snapshot.messages:
        check_message(message)
        if not isinstance(message, ConversationMessage) or not isinstance(message.id, str):
            raise TypeError("every message needs an id")
        if type(message.timestamp) is not int:
            raise TypeError("every message's timestamp must be milliseconds")
        history.append(message)
    _check_ids(history)
    return history


def _check_ids(history: MemoryHistory) -> None:
    seen: set[str] = set()
    for row in history.rows:
        if not row.id:
            raise TypeError("every message needs an id")
        if row.id in seen:
            raise TypeError(f"the id {row.id!r} is used twice")
        seen.add(row.id)


_FIELDS = {"team_task": "teamTask", "timestamp": "timestamp", "version": "version"}


def _fields(value: Struct, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: getattr(value, field) for field, name in names.items()}


def _messages_as_json(messages: Sequence[ConversationMessage]) -> list[object]:
    if isinstance(messages, Messages):
        # Rows are written directly, which is fast, unless they have fields from other systems.
        return [row if row.extra is None else message_as_json(messages[at]) for at, row in enumerate(messages.rows)]
    return [message_as_json(message) for message in messages]


def message_as_json(message: ConversationMessage) -> dict[str, Any]:
    """Return a message with the specification's names, and the fields from other systems where they were."""
    ours: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(message, extra=None))
    extra = message.extra or {}
    merged = {**extra, **ours}
    for part in ("speaker", "routing"):
        if isinstance(extra.get(part), dict) and part in ours:
            merged[part] = {**ours[part], **extra[part]}
    return merged


# What the files contain. agent-chatter used different names at different times; unknown fields are kept, too.


_SPELLINGS = {"roleId": "id", "roleName": "name", "roleTitle": "displayName"}
"""Our names, and the other ones of agent-chatter."""

# No real field has this name.
_EXTRA = "(other fields)"


class _Speaker(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    type: SpeakerType
    role_id: str | None = None
    role_name: str | None = None
    role_title: str | None = None


class _Routing(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    resolved_addressees: tuple[str, ...] | None = None
    raw_next_markers: tuple[str, ...] | None = None
    drop_targets: tuple[str, ...] | None = None
    parent_message_id: str | None = None
    intent: str | None = None


class _Message(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    id: str
    content: str
    speaker: _Speaker
    timestamp: int | float | str | None = None
    routing: _Routing | None = None
    extra: dict[str, Any] | None = msgspec.field(default=None, name=_EXTRA)


class _Snapshot(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    version: int
    messages: list[_Message]
    team_task: str | None = None
    timestamp: int | float | str | None = None
    extra: dict[str, Any] | None = msgspec.field(default=None, name=_EXTRA)


_decoder = msgspec.json.Decoder(_Snapshot)


def _decode(data: bytes | str) -> _Snapshot:
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        pass
    # Either it has fields from other systems, which are set apart, or half an emoji, which JavaScript writes as
    # "\ud83d" and which is not Unicode. The standard library reads that anyway.
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError:
        document = clean_json(json.loads(data))
    if isinstance(document, dict) and is_export(document):
        document = without_export_fields(document, EXPORT_FIELDS)
        document["messages"] = [without_export_fields(message) for message in document["messages"]]
    return msgspec.convert(_set_apart(document, _Snapshot, messages=_with_extra), _Snapshot)


def is_export(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a bullpen export, or was one before somebody changed it."""
    if not isinstance(document.get("messages"), list):
        return False
    about = document.get("conversation")
    has_hashes = any(isinstance(message, dict) and "hash" in message for message in document["messages"])
    return document.get("format") == EXPORT_FORMAT or (has_hashes and isinstance(about, dict) and "firstLink" in about)


def with_export_fields(fields: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a snapshot or a message with our own. Fields with the same name are set apart."""
    same = {name: fields[name] for name in fields if name in ours or name == SET_APART}
    set_apart = {SET_APART: same} if same else {}
    return {**{name: value for name, value in fields.items() if name not in same}, **set_apart, **ours}


def without_export_fields(fields: Any, ours: Collection[str] = MESSAGE_FIELDS) -> Any:
    """Return the fields of a snapshot or a message without what our export adds."""
    if not isinstance(fields, dict):
        return fields
    same = fields.get(SET_APART)
    kept = {name: value for name, value in fields.items() if name not in (*ours, SET_APART)}
    return {**kept, **same} if isinstance(same, dict) else kept


def _with_extra(messages: object) -> object:
    return [_message_with_extra(message) for message in messages] if isinstance(messages, list) else messages


def _message_with_extra(message: object) -> object:
    """Return a message with its unknown fields, and those of its speaker and routing, in one place."""
    if not isinstance(message, dict):
        return message
    parts = {"speaker": _speaker_with_extra(message), "routing": _routing_with_extra(message)}
    ours = _set_apart(message, _Message)
    inner = {name: part.pop(_EXTRA) for name, part in parts.items() if isinstance(part, dict) and _EXTRA in part}
    if isinstance(ours, dict) and (inner or _EXTRA in ours):
        ours[_EXTRA] = {**ours.get(_EXTRA, {}), **inner}
    return (
        {**ours, **{name: part for name, part in parts.items() if name in message}} if isinstance(ours, dict) else ours
    )


def _speaker_with_extra(message: dict[str, Any]) -> object:
    """Return a speaker with our names. A field with the other name that we do not need is kept, too."""
    speaker = message.get("speaker")
    if not isinstance(speaker, dict):
        return speaker
    fields = dict(speaker)
    for ours, other in _SPELLINGS.items():
        if not fields.get(ours) and fields.get(other):
            fields[ours] = fields.pop(other)
    return _set_apart(fields, _Speaker)


def _routing_with_extra(message: dict[str, Any]) -> object:
    """Return a routing whose addressees are names. If they were objects, those are kept, too."""
    routing = _set_apart(message.get("routing"), _Routing)
    addressees = routing.get("resolvedAddressees") if isinstance(routing, dict) else None
    if not isinstance(routing, dict) or not isinstance(addressees, list):
        return routing
    names = [name for addressee in addressees if (name := _name_of(addressee))]
    if names == addressees:
        return routing
    return {
        **routing,
        "resolvedAddressees": names,
        _EXTRA: {**routing.get(_EXTRA, {}), "resolvedAddressees": addressees},
    }


def _name_of(addressee: object) -> object:
    if not isinstance(addressee, dict):
        return addressee
    return next((name for key in ("memberName", "roleName", "identifier") if (name := addressee.get(key))), None)


def _set_apart(fields: object, kind: type[Struct], **readers: Callable[[object], object]) -> object:
    """Return an object with the fields that its kind does not have set apart."""
    if not isinstance(fields, dict):
        return fields
    known = {*kind.__struct_encode_fields__} - {_EXTRA}
    ours = {name: readers.get(name, _unchanged)(value) for name, value in fields.items() if name in known}
    unknown = {name: value for name, value in fields.items() if name not in known}
    return {**ours, _EXTRA: unknown} if unknown else ours


def _unchanged(value: object) -> object:
    return value


def _snapshot(wire: _Snapshot) -> ContextSnapshot:
    if wire.version != VERSION:
        raise ValueError(f"version {wire.version} is not {VERSION}")
    history = MemoryHistory()
    # There are few speakers: each is converted once.
    speaker = cache(_speaker)
    # Each is removed as soon as it is converted, so that the conversation is not in memory twice.
    wire.messages.reverse()
    while wire.messages:
        message = wire.messages.pop()
        history.rows.append(_row(message, speaker, history))
    _check_ids(history)
    return ContextSnapshot(
        messages=history.messages(),
        team_task=None if wire.team_task is None else clean_text(wire.team_task),
        timestamp=milliseconds(wire.timestamp or 0),
        version=wire.version,
        extra=wire.extra,
    )


def message_from_json(fields: Mapping[str, Any]) -> ConversationMessage:
    """Return the message that message_as_json, or agent-chatter, wrote."""
    history = MemoryHistory()
    history.rows.append(_row(msgspec.convert(_message_with_extra(fields), _Message), _speaker, history))
    return history.message(0)


def _row(wire: _Message, speaker: Callable[[_Speaker], Speaker], history: MemoryHistory) -> Row:
    return Row(
        id=wire.id,
        content=packed(wire.content),
        speaker=speaker(wire.speaker),
        timestamp=milliseconds(wire.timestamp or 0),
        routing=None if wire.routing is None else _routing(wire.routing, history),
        extra=packed_extra(wire.extra),
    )


def _speaker(wire: _Speaker) -> Speaker:
    if not wire.role_id:
        raise TypeError("Message speaker.roleId is required")
    return clean_strings(
        Speaker(
            role_id=wire.role_id,
            role_name=wire.role_name or wire.role_id,
            type=wire.type,
            role_title=wire.role_title or None,
        )
    )


def _routing(wire: _Routing, history: MemoryHistory) -> Routing:
    return history.shared_routing(
        resolved_addressees=tuple(filter(None, wire.resolved_addressees or ())),
        raw_next_markers=wire.raw_next_markers or (),
        drop_targets=wire.drop_targets or (),
        parent_message_id=wire.parent_message_id,
        intent=wire.intent,
    )
