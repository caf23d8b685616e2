"""Turns that did not end well: what their agent is told about them, since it may have changed files."""

from collections.abc import Iterable, Sequence

from bullpen.conversation.recorded_events import recorded_events
from bullpen.store.base import Store, Turn, TurnRecord
from bullpen.text.clean import one_line
from bullpen.text.tool_words import asked_of
from bullpen.turn_events import TextDelta, ToolStarted

MOST_TURNS = 3
MOST_TOOLS = 10
MOST_CHARACTERS = 200
ENDED = {"cancelled": "was cancelled", "interrupted": "was interrupted", "failed": "failed"}


def unfinished_note(store: Store, conversation_id: str, turns: Iterable[Turn]) -> str:
    """Return what an agent should know about its last turns that ended without a reply; nothing if they did nothing."""
    notes = (_note(turn, store.record(conversation_id, turn.id, prompt=False)) for turn in list(turns)[-MOST_TURNS:])
    return " ".join(filter(None, notes))


def turns_in_session(store: Store, conversation_id: str, turns: Sequence[Turn], session_id: str) -> list[Turn]:
    """Return those of an agent's last turns that continued a session, or a copy of it."""
    records = ((turn, store.record(conversation_id, turn.id, prompt=False)) for turn in turns[-MOST_TURNS:])
    return [turn for turn, record in records if record is not None and _continued(record) == session_id]


def _continued(record: TurnRecord) -> str:
    use = record.report.session
    return use.id if use is not None and use.is_continued else ""


def _note(turn: Turn, record: TurnRecord | None) -> str:
    events = [] if record is None else recorded_events(record)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    used = [_used(event) for event in events if isinstance(event, ToolStarted)]
    if not said.strip() and not used:
        return ""
    parts = [
        f"Your turn {turn.id} {ENDED.get(turn.state, 'ended')} before it was done.",
        f"It had begun to answer: “{_shortened(said)}”." if said.strip() else "",
        # A CLI that is stopped may not have told of its last command.
        f"It had used: {_listed(used)}." if used else "",
        "Files may have been changed: look at them before you continue.",
    ]
    return " ".join(filter(None, parts))


def _used(event: ToolStarted) -> str:
    return _shortened(f"{event.name} {asked_of(event.input)}")


def _listed(used: list[str]) -> str:
    more = len(used) - MOST_TOOLS
    return "; ".join(used[:MOST_TOOLS]) + (f"; and {more} more" if more > 0 else "")


def _shortened(text: str) -> str:
    line = one_line(text).strip()
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…"
