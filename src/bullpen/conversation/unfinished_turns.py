"""Turns that did not end well: what their agent is told about them, since it may have changed files."""

from collections.abc import Sequence
from itertools import islice

from bullpen.conversation.recorded_events import recorded_events
from bullpen.store.base import Store, Turn, TurnRecord
from bullpen.text.clean import one_line
from bullpen.text.tool_words import asked_of
from bullpen.turn_events import Event, Started, TextDelta, ToolStarted

MOST_TURNS = 3
MOST_TOOLS = 10
MOST_CHARACTERS = 200
ENDED = {"cancelled": "was cancelled", "interrupted": "was interrupted", "failed": "failed"}


def unfinished_note(store: Store, conversation_id: str, turns: Sequence[Turn]) -> str:
    """Return what an agent should know about its last turns that ended without a reply; nothing if they did nothing."""
    notes = (_note(turn, store.record(conversation_id, turn.id, prompt=False)) for turn in reversed(turns))
    # Those that did nothing do not count: they may be many, and the one before them has changed files.
    last = list(islice(filter(None, notes), MOST_TURNS))
    return " ".join(reversed(last))


def turns_in_session(store: Store, conversation_id: str, turns: Sequence[Turn], session_id: str) -> list[Turn]:
    """Return those of an agent's last turns that continued a session, or a copy of it."""
    records = ((turn, store.record(conversation_id, turn.id, prompt=False)) for turn in reversed(turns))
    continued = (turn for turn, record in records if record is not None and _continued(record) == session_id)
    return list(islice(continued, MOST_TURNS))[::-1]


def _continued(record: TurnRecord) -> str:
    use = record.report.session
    return use.id if use is not None and use.is_continued else ""


def _note(turn: Turn, record: TurnRecord | None) -> str:
    if record is None:
        return ""
    events = recorded_events(record)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    used = [_used(event) for event in events if isinstance(event, ToolStarted)]
    is_known = bool(said.strip() or used)
    if not is_known and not _may_have_worked(turn, record, events):
        return ""
    parts = [
        f"Your turn {turn.id} {ENDED.get(turn.state, 'ended')} before it was done.",
        f"It had begun to answer: “{_shortened(said)}”." if said.strip() else "",
        f"It had used: {_listed(used)}." if used else "",
        "" if is_known else "It is not known what it had done.",
        "Files may have been changed: look at them before you continue.",
    ]
    return " ".join(filter(None, parts))


def _may_have_worked(turn: Turn, record: TurnRecord, events: Sequence[Event]) -> bool:
    """Return whether a turn may have done something that its CLI, which was stopped, has not told of yet."""
    match turn.state:
        case "interrupted":
            return True
        case "cancelled":
            return bool(record.command)
        case _:
            has_started = any(isinstance(event, Started) for event in events)
            return has_started and turn.failure is not None and turn.failure.kind in ("crashed", "timed_out")


def _used(event: ToolStarted) -> str:
    return _shortened(f"{event.name} {asked_of(event.input)}")


def _listed(used: list[str]) -> str:
    more = len(used) - MOST_TOOLS
    return "; ".join(used[:MOST_TOOLS]) + (f"; and {more} more" if more > 0 else "")


def _shortened(text: str) -> str:
    line = one_line(text).strip()
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…"
