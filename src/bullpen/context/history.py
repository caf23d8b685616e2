"""Where a ContextManager keeps messages: the History protocol, and a history in little more memory than its text."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct

from bullpen.context.validation import clean_strings
from bullpen.context.views import View
from bullpen.errors import UnknownMessage
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.text.clean import SYMBOL_FOR_NULL, clean_text

_ID = attrgetter("id")


class Envelope(Struct, frozen=True, gc=False):
    """Who said a message, and to whom."""

    speaker_id: str
    speaker_name: str
    addressees: tuple[str, ...]
    """Names; empty means everyone."""


def envelope_of(message: "ConversationMessage | Row") -> Envelope:
    """Return who said a message, and to whom."""
    addressees = message.routing.resolved_addressees if message.routing else ()
    return Envelope(message.speaker.role_id, message.speaker.role_name, addressees)


class History(Protocol):
    """The messages of one conversation, only ever appended to. A position is 0 for the first."""

    def __len__(self) -> int: ...

    def append(self, message: ConversationMessage) -> None:
        """Keep a message whose id is new."""

    def message(self, position: int) -> ConversationMessage:
        """Return the message at a position."""

    def id_at(self, position: int) -> str:
        """Return the id of the message at a position."""

    def position_of(self, message_id: str) -> int:
        """Return where a message is, or raise UnknownMessage."""

    def messages(self) -> Sequence[ConversationMessage]:
        """Return the current messages, without later ones."""

    def preload(self, first: int, last: int) -> None:
        """Prepare to return the messages between two positions."""

    def envelopes(self, first: int, last: int) -> Sequence[Envelope]:
        """Return who said the messages from one position up to another, and to whom."""

    def names_of(self, speaker_id: str) -> set[str]:
        """Return every name that somebody has spoken under."""

    def highest_number(self) -> int:
        """Return the highest N of all ids msg-N, or 0."""


class Row(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One message as it is kept in memory. Its JSON is that of a ConversationMessage."""

    id: str
    content: str | Raw
    """ASCII as it is; other text as JSON in UTF-8, since one emoji makes a Python string four bytes per character."""
    speaker: Speaker
    timestamp: int
    routing: Routing | None = None
    extra: Raw | None = None
    """A JSON object."""


class MemoryHistory:
    """Messages in memory."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = list(rows)
        self._speakers: dict[Speaker, Speaker] = {}
        self._routings: dict[object, Routing] = {}
        self._positions: dict[str, int] | None = None
        self._names: dict[str, set[str]] = {}
        self._named = 0

    def __len__(self) -> int:
        return len(self.rows)

    def append(self, message: ConversationMessage) -> None:
        """Keep a message whose id is new."""
        self.rows.append(
            Row(
                id=clean_text(message.id),
                content=packed(message.content),
                speaker=self.shared_speaker(message.speaker),
                timestamp=message.timestamp,
                routing=None if message.routing is None else self._shared(message.routing),
                extra=packed_extra(message.extra),
            )
        )

    def message(self, position: int) -> ConversationMessage:
        """Return the message at a position."""
        row = self.rows[position]
        return ConversationMessage(
            id=row.id,
            content=unpacked(row.content),
            speaker=row.speaker,
            timestamp=row.timestamp,
            routing=row.routing,
            extra=unpacked_extra(row.extra),
        )

    def id_at(self, position: int) -> str:
        """Return the id of the message at a position."""
        return self.rows[position].id

    def preload(self, first: int, last: int) -> None:
        """Do nothing: all messages are in memory."""

    def envelopes(self, first: int, last: int) -> Sequence[Envelope]:
        """Return who said the messages from one position up to another, and to whom."""
        return [
            Envelope(row.speaker.role_id, row.speaker.role_name, row.routing.resolved_addressees if row.routing else ())
            for row in self.rows[first:last]
        ]

    def names_of(self, speaker_id: str) -> set[str]:
        """Return every name that somebody has spoken under."""
        for row in self.rows[self._named :]:
            self._names.setdefault(row.speaker.role_id, set()).add(row.speaker.role_name)
        self._named = len(self.rows)
        return self._names.get(speaker_id, set())

    def highest_number(self) -> int:
        """Return the highest N of all ids msg-N, or 0."""
        return max(map(message_number, map(_ID, self.rows)), default=0)

    def messages(self) -> "Messages":
        """Return the current messages, without later ones."""
        return Messages(self)

    def position_of(self, message_id: str) -> int:
        """Return where a message is, or raise UnknownMessage."""
        # Ids count up from msg-1 unless a snapshot brought others, so the number is nearly always the position.
        guess = message_number(message_id) - 1
        if 0 <= guess < len(self.rows) and self.rows[guess].id == message_id:
            return guess
        return self._indexed_position_of(message_id)

    def shared_speaker(self, speaker: Speaker) -> Speaker:
        """Return the equal speaker, cleaned, of earlier messages: each speaker is kept in memory once."""
        known = self._speakers.get(speaker)
        return known or self._speakers.setdefault(speaker, clean_strings(speaker))

    def shared_routing(
        self,
        *,
        resolved_addressees: tuple[str, ...],
        raw_next_markers: tuple[str, ...],
        drop_targets: tuple[str, ...],
        parent_message_id: str | None,
        intent: str | None,
    ) -> Routing:
        """Return a routing, cleaned, that shares all but its parent with equal ones of earlier messages."""
        key = (resolved_addressees, raw_next_markers, drop_targets, intent)
        common = self._routings.get(key)
        if common is None:
            common = self._routings[key] = clean_strings(
                Routing(
                    resolved_addressees=resolved_addressees,
                    raw_next_markers=raw_next_markers,
                    drop_targets=drop_targets,
                    intent=intent,
                )
            )
        if parent_message_id is None:
            return common
        return Routing(
            resolved_addressees=common.resolved_addressees,
            raw_next_markers=common.raw_next_markers,
            drop_targets=common.drop_targets,
            parent_message_id=clean_text(parent_message_id),
            intent=common.intent,
        )

    def _shared(self, routing: Routing) -> Routing:
        # Lists can be written like tuples, but only tuples can be keys.
        return self.shared_routing(
            resolved_addressees=tuple(routing.resolved_addressees),
            raw_next_markers=tuple(routing.raw_next_markers),
            drop_targets=tuple(routing.drop_targets),
            parent_message_id=routing.parent_message_id and self._known_id(routing.parent_message_id),
            intent=routing.intent,
        )

    def _known_id(self, message_id: str) -> str:
        """Return the id object of its message, so that it is in memory only once."""
        position = message_number(message_id) - 1
        known = self.rows[position].id if 0 <= position < len(self.rows) else message_id
        return known if known == message_id else message_id

    def _indexed_position_of(self, message_id: str) -> int:
        if self._positions is None:
            self._positions = {}
        for position in range(len(self._positions), len(self.rows)):
            self._positions[self.rows[position].id] = position
        if message_id not in self._positions:
            raise UnknownMessage(message_id)
        return self._positions[message_id]


class Messages(View[ConversationMessage]):
    """The messages of a history up to now."""

    __slots__ = ("rows",)

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(range(len(history)), history.message)
        self.rows = history.rows[:]


def message_number(message_id: str) -> int:
    """Return the 7 of "msg-7", and 0 for an id of another form."""
    number = message_id[4:]
    is_number = len(number) < 16 and number.isascii() and number.isdecimal()
    return int(number) if is_number and message_id.startswith("msg-") else 0


def packed(text: str) -> str | Raw:
    """Return a text, cleaned, as a row keeps it."""
    if text.isascii() and "\0" not in text:
        return text
    try:
        encoded = msgspec.json.encode(text.replace("\0", SYMBOL_FOR_NULL))
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(clean_text(text))
    # A copy, since msgspec's buffer may be half as large again.
    return Raw(memoryview(encoded).tobytes())


def packed_extra(extra: object) -> Raw | None:
    """Return fields from other systems as a row keeps them."""
    return Raw(msgspec.json.encode(extra)) if extra else None


def unpacked_extra(extra: Raw | None) -> dict[str, Any] | None:
    """Return a row's fields from other systems."""
    return None if extra is None else msgspec.json.decode(extra, type=dict[str, Any])


def unpacked(content: str | Raw) -> str:
    """Return a row's text."""
    return content if isinstance(content, str) else msgspec.json.decode(content, type=str)
