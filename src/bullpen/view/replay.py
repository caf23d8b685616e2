"""Turns that are over, as they are shown again: the tools that were used, and what they really changed."""

from msgspec import Struct

from bullpen.conversation.recorded_events import recorded_events
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store
from bullpen.turn_events import ToolFinished, ToolStarted
from bullpen.view.change_lookup import find_changes
from bullpen.view.diff import FileDiff, file_diffs
from bullpen.view.turn_lookup import turn_that_said


class ReplayedTurn(Struct, frozen=True, kw_only=True):
    """What an agent did in a turn that ended with a reply."""

    turn: str
    member: str
    calls: tuple[ToolStarted | ToolFinished, ...]
    changed: dict[str, FileDiff]


def replayed_turn(store: Store, conversation_id: str, message: ConversationMessage) -> ReplayedTurn | None:
    """Return the turn that ended with a message; None if there is none. Slow: not for an event loop."""
    turn = turn_that_said(store, conversation_id, message)
    record = None if turn is None else store.record(conversation_id, turn.id, prompt=False)
    if turn is None or record is None:
        return None
    calls = tuple(event for event in recorded_events(record) if isinstance(event, ToolStarted | ToolFinished))
    changed = changed_files(store, conversation_id, turn.id) if calls else {}
    return ReplayedTurn(turn=turn.id, member=turn.member, calls=calls, changed=changed)


def changed_files(store: Store, conversation_id: str, turn_id: str) -> dict[str, FileDiff]:
    """Return what a turn changed in each file, by the file's whole path."""
    records = find_changes(store, conversation_id, turn_id)
    return {
        f"{record.changes.folder}/{file.path}": file
        for record in records
        if record.kind == "turn"
        for file in file_diffs(record.changes)
    }
