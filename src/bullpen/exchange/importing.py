"""Importing a file as a new conversation: a snapshot, a session of agent-chatter, or our own export."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.context.snapshot import ContextSnapshot, is_export, message_from_json, without_export_fields
from bullpen.context.validation import milliseconds
from bullpen.errors import InvalidImport, InvalidSnapshot
from bullpen.exchange.approvals import imported_approvals
from bullpen.exchange.changes import highest_turn, imported_changes
from bullpen.exchange.checks import imported_checks
from bullpen.exchange.new_conversations import fill, fill_approvals, fill_changes, fill_checks, new_conversation
from bullpen.file_changes import ChangeRecord
from bullpen.memory import MemberMemory
from bullpen.messages import ConversationMessage
from bullpen.routing.progress import Progress
from bullpen.routing.summaries import summaries_in
from bullpen.store.base import StateChange, Store
from bullpen.store.chain import next_link
from bullpen.text.clean import clean_json, one_line

# "schemaVersion" of the session files that agent-chatter writes to ~/.agent-chatter/sessions.
SESSION_VERSION = "1.0"
# Later times are not plausible; they may be in microseconds.
LATEST_TIME = 253_402_300_799_999

LONGEST_TITLE = 200

UNFINISHED = "The import did not finish. Delete this conversation and import the file again."


class Imported(Struct, frozen=True, kw_only=True):
    """The checked content of a file."""

    messages: Sequence[ConversationMessage]
    team: str
    """Empty if the file does not name one. Members are not imported: a team file says which programs run."""
    team_task: str | None
    started_at: int
    title: str | None = None
    extra: Mapping[str, Any] | None = None
    """Fields of other systems, kept as they are."""
    sessions: Mapping[str, MemberMemory] = {}
    """For each agent, the session of which it continues a copy."""
    changes: tuple[ChangeRecord, ...] = ()
    """What changed in folders, without what only helps where that was."""
    checks: tuple[CheckResult, ...] = ()
    """What checks said after turns."""
    approvals: tuple[ApprovalRecord, ...] = ()
    """What agents asked before they did something, and what was answered."""
    dropped: Mapping[int, str] = {}
    """The numbers of summaries that somebody dropped, and who did."""


def read_import(data: bytes) -> Imported:
    """Return the conversation in a file, or raise InvalidImport."""
    try:
        return _imported(_decoded(data))
    except InvalidSnapshot as error:
        raise InvalidImport(error.reason) from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidImport(str(error)) from error


def import_conversation(
    store: Store, imported: Imported, *, team: str = "", team_file: str = "", team_path: str = ""
) -> str:
    """Store it as a new conversation and return its id. If that fails, nothing is stored."""
    with new_conversation(
        store,
        "imported",
        unfinished=UNFINISHED,
        team=team or imported.team,
        team_file=team_file,
        team_path=team_path,
        started_at=imported.started_at,
        team_task=imported.team_task,
        extra=imported.extra,
    ) as conversation_id:
        fill(store, conversation_id, imported.messages)
        fill_changes(store, conversation_id, imported.changes)
        fill_checks(store, conversation_id, imported.checks)
        fill_approvals(store, conversation_id, imported.approvals)
        turns_made = highest_turn([*imported.changes, *imported.checks, *imported.approvals])
        summaries = tuple(summaries_in(imported.messages, imported.dropped))
        progress = msgspec.to_builtins(
            Progress(borrowed=dict(imported.sessions), turns_made=turns_made, summaries=summaries)
        )
        change = StateChange(paused=None, title=imported.title, progress=progress)
        store.update(conversation_id, at=imported.started_at, change=change)
    return conversation_id


def copies_of(store: Store, imported: Imported) -> list[str]:
    """Return the conversations that seem to be earlier imports of the same file."""
    return [
        conversation.id
        for conversation in store.conversations()
        if (conversation.messages, conversation.started_at) == (len(imported.messages), imported.started_at)
        and [stored.message for stored in store.messages(conversation.id, limit=1)] == list(imported.messages[-1:])
    ]


def _decoded(data: bytes) -> dict[str, Any]:
    text = data.removeprefix(b"\xef\xbb\xbf")
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        # JavaScript writes half an emoji as "\ud83d", which is not valid Unicode. The standard library reads it anyway.
        document = clean_json(json.loads(text))
    if not isinstance(document, dict):
        raise TypeError("it is not a JSON object")
    return document


def _imported(document: dict[str, Any]) -> Imported:
    is_session = "messages" not in document and isinstance(document.get("context"), dict)
    about = document.get("conversation")
    if is_session and document.get("schemaVersion") != SESSION_VERSION:
        raise ValueError(f"the session's schemaVersion is {document.get('schemaVersion')!r}, not {SESSION_VERSION!r}")
    if not is_session and "messages" not in document:
        raise ValueError("it is neither a snapshot (with messages) nor a session (with a context)")
    if not is_session:
        _check_hashes(document)
    snapshot = ContextSnapshot.from_json(msgspec.json.encode(document["context"] if is_session else document))
    ours = about if isinstance(about, dict) else {}
    started = document.get("createdAt") if is_session else ours.get("startedAt")
    return Imported(
        messages=_checked(snapshot.messages),
        team=_text(document.get("teamId") if is_session else ours.get("team")),
        team_task=_text(ours.get("task")) or snapshot.team_task,
        started_at=_started_at(started, snapshot),
        title=one_line(_text(ours.get("title")))[:LONGEST_TITLE] or None,
        extra=snapshot.extra,
        changes=imported_changes(ours.get("changes", []), len(snapshot.messages)) if is_export(document) else (),
        checks=imported_checks(ours.get("checks", []), len(snapshot.messages)) if is_export(document) else (),
        approvals=imported_approvals(ours.get("approvals", []), _hashes(document)) if is_export(document) else (),
        dropped=_dropped(ours.get("summaries")) if is_export(document) else {},
    )


def _dropped(summaries: object) -> dict[int, str]:
    """Return which summaries of an export were dropped, and by whom."""
    listed = summaries if isinstance(summaries, list) else []
    found = ((one.get("number"), _text(one.get("droppedBy"))) for one in listed if isinstance(one, dict))
    return {number: by for number, by in found if isinstance(number, int) and by}


def _check_hashes(document: dict[str, Any]) -> None:
    """Raise ValueError if a message was changed since our export. A snapshot from elsewhere has no hashes."""
    messages, about = document["messages"], document.get("conversation")
    if not is_export(document):
        return
    facts = about if isinstance(about, dict) else {}
    previous = facts.get("firstLink")
    for sequence, message in enumerate(messages, start=1):
        link = message.get("hash") if isinstance(message, dict) else None
        if link != _link(previous, sequence, message):
            raise ValueError(
                f"message {sequence} was changed after the export: its hash does not match. If that was on "
                'purpose, remove all "hash" and "format" fields'
            )
        previous = link
    if len(messages) < facts.get("messages", 0):
        raise ValueError(f"it contains only {len(messages)} of {facts['messages']} messages")


def _hashes(document: dict[str, Any]) -> list[str]:
    """Return what the first message of an export follows, and the hash of each message, all of them checked."""
    return [document["conversation"]["firstLink"], *(message["hash"] for message in document["messages"])]


def _link(previous: object, sequence: int, message: Any) -> str:
    """Return the hash that a message must have."""
    message = without_export_fields(message)
    return next_link(bytes.fromhex(str(previous)), sequence, message_from_json(message)).hex()


def _checked(messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
    if not len(messages):
        raise ValueError("it contains no messages")
    for message in messages:
        if not 0 <= message.timestamp <= LATEST_TIME:
            raise ValueError(f"the timestamp {message.timestamp} of message {message.id!r} is not a valid time")
    return messages


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _started_at(started: object, snapshot: ContextSnapshot) -> int:
    candidate = milliseconds(started) if isinstance(started, int | str) and started else 0
    return candidate if 0 < candidate <= LATEST_TIME else snapshot.messages[0].timestamp
