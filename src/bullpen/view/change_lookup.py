"""Finding changes: by what a person types, a turn, "5..9", or "all"; and those that belong to messages."""

from collections.abc import Iterable, Sequence

from bullpen.errors import BullpenError
from bullpen.file_changes import ChangeRecord
from bullpen.store.base import Store
from bullpen.view.turn_lookup import find_turn

ALL = "all"
BETWEEN = ".."
OF_TURNS = ("turn", "merge")


def is_of_several(reference: str) -> bool:
    """Return whether a person asks for the changes of several turns."""
    return reference == ALL or BETWEEN in reference


def find_changes(
    store: Store, conversation_id: str, reference: str = "", *, patches: bool = True
) -> list[ChangeRecord]:
    """Return the changes of a turn, those from one turn to another, or all; without a reference, the latest."""
    if reference == ALL:
        return all_changes(store, conversation_id, patches=patches)
    if BETWEEN in reference:
        return _between(store, conversation_id, *reference.split(BETWEEN, 1), patches=patches)
    turn_id = find_turn(store, conversation_id, reference).id if reference else _latest(store, conversation_id)
    found = store.changes(conversation_id, turn_ids=[turn_id], patches=patches) if turn_id else []
    return [record for record in shown_changes(found) if record.kind in (*OF_TURNS, "collision")]


def all_changes(store: Store, conversation_id: str, *, patches: bool = False) -> list[ChangeRecord]:
    """Return everything that was changed, oldest first."""
    return shown_changes(store.changes(conversation_id, patches=patches))


def shown_changes(records: Iterable[ChangeRecord]) -> list[ChangeRecord]:
    """Return records that people want to see: not those of turns that run, or that changed nothing."""
    return [record for record in records if record.changes.files or record.changes.note]


def changes_after(store: Store, conversation_id: str, *, first: int = 0) -> dict[int, list[ChangeRecord]]:
    """Return what was changed from a message on, by the number of the message that it came after, without patches."""
    found: dict[int, list[ChangeRecord]] = {}
    for record in shown_changes(store.changes(conversation_id, first=first, patches=False)):
        found.setdefault(max(record.after_message, 1), []).append(record)
    return found


def _latest(store: Store, conversation_id: str) -> str:
    """Return the latest turn that changed something; nothing if none did."""
    known = all_changes(store, conversation_id)
    return next((record.turn_id for record in reversed(known) if record.kind in OF_TURNS), "")


def _between(store: Store, conversation_id: str, first: str, last: str, *, patches: bool) -> list[ChangeRecord]:
    """Return what was changed from the beginning of one turn to the end of another, also by people."""
    turns = [turn.id for turn in store.turns(conversation_id)]
    begin = turns.index(find_turn(store, conversation_id, first).id) if first else 0
    end = turns.index(find_turn(store, conversation_id, last).id) if last else len(turns) - 1
    if begin > end:
        raise BullpenError(
            f"Turn {first} comes after turn {last}. The earlier one is written first: {last}{BETWEEN}{first}"
        )
    wanted = set(turns[begin : end + 1])
    known = all_changes(store, conversation_id, patches=False)
    places = [place for place, one in enumerate(known) if one.kind in OF_TURNS and one.turn_id in wanted]
    if not places:
        return []
    numbers = {one.number for one in known[places[0] : places[-1] + 1]}
    return [one for one in _read(store, conversation_id, known, numbers, patches=patches) if one.number in numbers]


def _read(
    store: Store, conversation_id: str, known: Sequence[ChangeRecord], numbers: set[int], *, patches: bool
) -> list[ChangeRecord]:
    messages = [one.after_message for one in known if one.number in numbers]
    return store.changes(conversation_id, first=min(messages), last=max(messages), patches=patches)
