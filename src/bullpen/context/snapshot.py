"""The state of a conversation as JSON: ours, and that of the TypeScript system it began with."""

import json
from collections.abc import Callable, Sequence
from functools import cache

import msgspec
from msgspec import Struct

from bullpen.context.history import History, Messages, Row, packed
from bullpen.context.text import clean_json, clean_text
from bullpen.context.validation import check_message, clean_strings, milliseconds
from bullpen.errors import InvalidSnapshot
from bullpen.messages import ConversationMessage, Routing, Speaker, SpeakerType

VERSION = 1


class ContextSnapshot(Struct, frozen=True, kw_only=True, rename="camel"):
    """All that a ContextManager holds, at one moment."""

    messages: Sequence[ConversationMessage]
    team_task: str | None = None
    timestamp: int = 0
    """When it was taken, in milliseconds since 1970."""
    version: int = VERSION

    def to_json(self) -> bytes:
        """Return the snapshot with the specification's names."""
        return msgspec.json.encode(self, enc_hook=_rows)

    @classmethod
    def from_json(cls, data: bytes | str) -> "ContextSnapshot":
        """Return the snapshot that to_json, or the TypeScript system, wrote."""
        try:
            return _snapshot(_decode(data))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidSnapshot(str(error)) from error


def history_of(snapshot: ContextSnapshot) -> History:
    """Return the messages of a snapshot as a history, or raise InvalidSnapshot."""
    if not isinstance(snapshot, ContextSnapshot):
        raise InvalidSnapshot(f"expected a ContextSnapshot, got {type(snapshot).__name__}")
    if snapshot.version != VERSION:
        raise InvalidSnapshot(f"version {snapshot.version!r} is not {VERSION}")
    if snapshot.team_task is not None and not isinstance(snapshot.team_task, str):
        raise InvalidSnapshot("teamTask must be a string or null")
    if isinstance(snapshot.messages, Messages):
        return History(snapshot.messages.rows)
    try:
        return _checked_history(snapshot)
    except TypeError as error:
        raise InvalidSnapshot(str(error)) from error


def _checked_history(snapshot: ContextSnapshot) -> History:
    history = History()
    for message in snapshot.messages:
        check_message(message)
        if not isinstance(message, ConversationMessage) or not isinstance(message.id, str):
            raise TypeError("every message needs an id")
        if type(message.timestamp) is not int:
            raise TypeError("every message's timestamp must be milliseconds")
        history.append(message)
    _check_ids(history)
    return history


def _check_ids(history: History) -> None:
    seen: set[str] = set()
    for row in history.rows:
        if not row.id:
            raise TypeError("every message needs an id")
        if row.id in seen:
            raise TypeError(f"the id {row.id!r} stands twice")
        seen.add(row.id)


def _rows(messages: object) -> list[Row]:
    if isinstance(messages, Messages):
        return messages.rows
    raise TypeError(f"Cannot write {type(messages).__name__} into a snapshot")


# What the files hold. The TypeScript system called the same things by other names at different times; what we do not
# know is passed over.


class _Speaker(Struct, frozen=True, rename="camel", gc=False):
    type: SpeakerType
    role_id: str | None = None
    role_name: str | None = None
    role_title: str | None = None
    id: str | None = None
    name: str | None = None
    display_name: str | None = None


class _Addressee(Struct, frozen=True, rename="camel", gc=False):
    identifier: str | None = None
    member_name: str | None = None
    role_name: str | None = None


class _Routing(Struct, frozen=True, rename="camel", gc=False):
    resolved_addressees: tuple[str | _Addressee, ...] | None = None
    raw_next_markers: tuple[str, ...] | None = None
    drop_targets: tuple[str, ...] | None = None
    parent_message_id: str | None = None
    intent: str | None = None


class _Message(Struct, frozen=True, rename="camel", gc=False):
    id: str
    content: str
    speaker: _Speaker
    timestamp: int | float | str | None = None
    routing: _Routing | None = None


class _Snapshot(Struct, frozen=True, rename="camel"):
    version: int
    messages: list[_Message]
    team_task: str | None = None
    timestamp: int | float | str | None = None


_decoder = msgspec.json.Decoder(_Snapshot)


def _decode(data: bytes | str) -> _Snapshot:
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # JavaScript writes half an emoji as "\ud83d", which is no Unicode. The standard library reads it all the same.
        return _decoder.decode(msgspec.json.encode(clean_json(json.loads(data))))


def _snapshot(wire: _Snapshot) -> ContextSnapshot:
    if wire.version != VERSION:
        raise ValueError(f"version {wire.version} is not {VERSION}")
    history = History()
    # There are few speakers and few sets of addressees, however many messages: each is translated once.
    speaker, addressees = cache(_speaker), cache(_addressees)
    # Each is forgotten as soon as it is translated, so that the conversation is not in memory twice.
    wire.messages.reverse()
    while wire.messages:
        message = wire.messages.pop()
        history.rows.append(
            Row(
                id=message.id,
                content=packed(message.content),
                speaker=speaker(message.speaker),
                timestamp=milliseconds(message.timestamp or 0),
                routing=None if message.routing is None else _routing(message.routing, addressees, history),
            )
        )
    _check_ids(history)
    return ContextSnapshot(
        messages=history.messages(),
        team_task=None if wire.team_task is None else clean_text(wire.team_task),
        timestamp=milliseconds(wire.timestamp or 0),
        version=wire.version,
    )


def _speaker(wire: _Speaker) -> Speaker:
    role_id = wire.role_id or wire.id
    if not role_id:
        raise TypeError("Message speaker.roleId is required")
    return clean_strings(
        Speaker(
            role_id=role_id,
            role_name=wire.role_name or wire.name or role_id,
            type=wire.type,
            role_title=wire.role_title or wire.display_name,
        )
    )


def _routing(
    wire: _Routing, addressees: Callable[[tuple[str | _Addressee, ...]], tuple[str, ...]], history: History
) -> Routing:
    return history.shared_routing(
        resolved_addressees=addressees(wire.resolved_addressees or ()),
        raw_next_markers=wire.raw_next_markers or (),
        drop_targets=wire.drop_targets or (),
        parent_message_id=wire.parent_message_id,
        intent=wire.intent,
    )


def _addressees(wire: tuple[str | _Addressee, ...]) -> tuple[str, ...]:
    names = (one if isinstance(one, str) else one.member_name or one.role_name or one.identifier for one in wire)
    return tuple(name for name in names if name)
