"""The chain of hashes: each message's hash covers all that is stored about it, and the hash before it.

It is the SHA-256 of the hash before, a line of JSON (an array without spaces that escapes only what JSON must), a
line feed, and the text, all in UTF-8. Fields from other systems come last in the array, if there are any. So any
program can recompute it, from this store, another or an export.

What agents ask before they do something, and what is answered, is a second chain that begins with the same hash. Each
hash in it is the SHA-256 of the hash before, the hash of the last message at that moment, the record as a line of JSON
(an object with sorted keys, without spaces, and without the fields that have their defaults), and a line feed.
"""

import hashlib

import msgspec

from bullpen.approvals import ApprovalRecord
from bullpen.messages import ConversationMessage

# The keys of objects are sorted, since their order means nothing in JSON.
_line = msgspec.json.Encoder(order="deterministic").encode


def first_link(conversation_id: str, team: str, team_file: str, started_at: int) -> bytes:
    """Return the hash that the first message of a conversation follows."""
    return _hash(b"", [conversation_id, team, started_at], team_file)


def next_link(previous: bytes, sequence: int, message: ConversationMessage) -> bytes:
    """Return the hash of the message that follows another."""
    speaker, routing = message.speaker, message.routing
    said_by = [speaker.role_id, speaker.role_name, speaker.type, speaker.role_title]
    said_to = routing and [
        routing.resolved_addressees,
        routing.raw_next_markers,
        routing.drop_targets,
        routing.parent_message_id,
        routing.intent,
    ]
    facts: list[object] = [sequence, message.id, message.timestamp, said_by, said_to]
    if message.extra is not None:
        facts.append(message.extra)
    return _hash(previous, facts, message.content)


def approval_line(record: ApprovalRecord) -> bytes:
    """Return what a hash covers of a question or an answer: all but the hash."""
    facts: dict[str, object] = msgspec.to_builtins(record)
    facts.pop("hash", None)
    return _line(facts)


def next_approval_link(previous: bytes, last_message: bytes, line: bytes) -> bytes:
    """Return the hash of the question or the answer that follows another."""
    return hashlib.sha256(b"%b%b%b\n" % (previous, last_message, line)).digest()


def _hash(previous: bytes, facts: list[object], text: str) -> bytes:
    link = hashlib.sha256(b"%b%b\n" % (previous, _line(facts)))
    link.update(text.encode())
    return link.digest()
