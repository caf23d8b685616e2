"""A conversation as JSON, for programs. docs/sessions.md describes the fields.

It is also a snapshot with more fields: anything that reads a ContextSnapshot can read it, and so can `bullpen import`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.context.manager import limited_team_task
from bullpen.context.snapshot import EXPORT_FORMAT, message_as_json, with_export_fields
from bullpen.exchange.approvals import all_approvals, approval_as_json
from bullpen.exchange.changes import all_changes
from bullpen.exchange.checks import all_checks
from bullpen.exchange.formatting import all_messages, all_turns
from bullpen.file_changes import ChangeRecord
from bullpen.memory import Memory
from bullpen.routing.progress import Progress
from bullpen.store.base import Store, StoredConversation, StoredMessage, Turn
from bullpen.store.chain import first_link

VERSION = 1
NOT_EXPORTED = ("file", "firstSystem", "system", "task")
"""Of a memory: digests."""


def json_pieces(store: Store, conversation_id: str, *, prompts: bool = False) -> Iterator[str]:
    """Yield a conversation piece by piece; with prompts, also each agent's prompt and raw output."""
    conversation = store.conversation(conversation_id)
    snapshot = {
        **(conversation.extra or {}),
        "version": VERSION,
        "timestamp": conversation.last_at,
        "teamTask": limited_team_task(conversation.team_task),
    }
    about = {
        **_conversation(conversation, prompts),
        **_summaries(conversation),
        "decisions": [_camel(decision) for decision in store.decisions(conversation_id)],
    }
    ours = {"format": EXPORT_FORMAT, "conversation": about, "turns": []}
    yield "{"
    for name, value in with_export_fields(snapshot, ours).items():
        if name not in ("conversation", "turns"):
            yield f"{_text(name)}: {_text(value)},\n"
    # Open at its end, for there may be too many changes to hold them in memory.
    yield f'"conversation": {_text(about)[:-1]},\n'
    yield from _list_pieces("changes", map(_changes, all_changes(store, conversation_id, last=conversation.messages)))
    yield ",\n"
    yield from _list_pieces("checks", map(_camel, all_checks(store, conversation_id, last=conversation.messages)))
    yield ",\n"
    approvals = all_approvals(store, conversation_id, last=conversation.messages)
    yield from _list_pieces("approvals", map(approval_as_json, approvals))
    yield "},\n"
    yield from _list_pieces("messages", map(_message, all_messages(store, conversation_id)))
    yield ",\n"
    yield from _list_pieces("turns", _turns(store, conversation_id, prompts))
    yield "}\n"


def _list_pieces(name: str, items: Iterable[object]) -> Iterator[str]:
    yield f"{_text(name)}: ["
    separator = "\n"
    for item in items:
        yield f"{separator}{_text(item)}"
        separator = ",\n"
    yield "\n]"


def _conversation(conversation: StoredConversation, prompts: bool) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": conversation.id,
        "team": conversation.team,
        "title": conversation.title,
        "startedAt": conversation.started_at,
        "firstLink": _first_link(conversation).hex(),
        "lastAt": conversation.last_at,
        "messages": conversation.messages,
        "state": conversation.state,
        "waitsFor": conversation.waits_for,
        "paused": conversation.paused,
        "task": conversation.team_task,
    }
    return {**fields, "teamFile": conversation.team_file} if prompts else fields


def _summaries(conversation: StoredConversation) -> dict[str, object]:
    """Return what was summed up; the messages themselves say what each covers, but not which were dropped."""
    summaries = msgspec.convert(conversation.progress, Progress).summaries
    return {"summaries": [_camel(summary) for summary in summaries]} if summaries else {}


def _first_link(conversation: StoredConversation) -> bytes:
    return first_link(conversation.id, conversation.team, conversation.team_file, conversation.started_at)


def _message(stored: StoredMessage) -> dict[str, object]:
    ours = {"sequence": stored.sequence, "hash": stored.hash.hex()}
    return with_export_fields(message_as_json(stored.message), ours)


def _turns(store: Store, conversation_id: str, prompts: bool) -> Iterator[dict[str, object]]:
    for turn, memory in all_turns(store, conversation_id):
        record = _record(store, conversation_id, turn) if prompts else {}
        about = {"usage": _camel(turn.usage), "failure": _camel(turn.failure), "memory": _memory(memory)}
        yield {**_camel(turn), **about, **record}


def _memory(memory: Memory | None) -> Any:
    """Return the session that a turn left, without what only finds out whether something has changed."""
    if memory is None:
        return None
    return {name: value for name, value in _camel(memory).items() if name not in NOT_EXPORTED}


def _changes(record: ChangeRecord) -> dict[str, object]:
    files = [_camel(file) for file in record.changes.files]
    changes = {name: value for name, value in _camel(record.changes).items() if name != "total"}
    return {**_camel(record), "changes": {**changes, "files": files}}


def _record(store: Store, conversation_id: str, turn: Turn) -> dict[str, object]:
    record = store.record(conversation_id, turn.id)
    if record is None:
        return {}
    stream = record.stream.decode(errors="replace")
    return {**_camel(record), "report": _camel(record.report), "stream": stream}


def _camel(value: Struct | None) -> Any:
    """Return the fields of a value under the names that snapshots use; the values are unchanged."""
    if value is None:
        return None
    return {_camel_name(name): field for name, field in msgspec.structs.asdict(value).items()}


def _camel_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
