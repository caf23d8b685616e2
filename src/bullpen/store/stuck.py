"""Conversations that are stuck: what is remembered of them contradicts their messages and turns.

Before writes were fenced, this happened when two processes owned one: each remembered its own numbers, and the lower
numbers were stored last. Then the next turn always got the number of an earlier one, and was refused.
"""

from collections.abc import Callable, Iterator, Mapping
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.store import message_rows, turn_rows
from bullpen.store.packing import DamagedData

CAN_BE_DECIDED = (*turn_rows.CAN_BE_RETRIED, "running")
"""A turn that was running when its process was killed waits for a decision before it is called interrupted."""


class Remembered(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a conversation's progress that its rows know better."""

    turns_made: int | None = None
    message_number: int | None = None
    undecided: tuple[str, ...] = ()


class Known(Struct, frozen=True, kw_only=True):
    """What the rows of a conversation say."""

    highest_turn: int
    highest_message: int
    state_of: Callable[[str], str | None]
    """Returns the state of a turn, by its id; None if there is no such turn."""


def known(db: Connection, conversation: int) -> Known:
    """Return what SQLite's rows say."""
    return Known(
        highest_turn=turn_rows.highest_number(db, conversation),
        highest_message=message_rows.highest_number(db, conversation),
        state_of=lambda turn_id: _state_of(db, conversation, turn_id),
    )


def problems(rows: Known, progress: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is remembered wrongly, in sentences."""
    before, right = _remembered(progress), _right(rows, _remembered(progress))
    if right.turns_made != before.turns_made:
        yield f"its next turn would get a number that is taken, for there are turns up to {right.turns_made}"
    if right.message_number != before.message_number:
        yield f"its next message would get an id that is taken, for there is msg-{right.message_number}"
    for turn_id in before.undecided:
        if turn_id not in right.undecided:
            yield f"turn {turn_id!r} waits for a decision, but there is nothing to decide about it"


def mended(rows: Known, progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return what would be remembered if nothing had gone wrong."""
    right = _right(rows, _remembered(progress))
    others = {key: value for key, value in progress.items() if key not in Remembered.__struct_fields__}
    return {**others, **msgspec.to_builtins(right)}


def _right(rows: Known, before: Remembered) -> Remembered:
    turns_made, message_number = before.turns_made, before.message_number
    # What was never counted is counted when the conversation is opened.
    if turns_made is not None:
        turns_made = max(turns_made, rows.highest_turn)
    if message_number is not None:
        message_number = max(message_number, rows.highest_message)
    undecided = tuple(turn_id for turn_id in before.undecided if rows.state_of(turn_id) in CAN_BE_DECIDED)
    return Remembered(turns_made=turns_made, message_number=message_number, undecided=undecided)


def _remembered(progress: Mapping[str, Any]) -> Remembered:
    try:
        return msgspec.convert(progress, Remembered)
    except msgspec.MsgspecError as error:
        raise DamagedData(f"what is remembered cannot be read: {error}") from error


def _state_of(db: Connection, conversation: int, turn_id: str) -> str | None:
    key = (conversation, turn_id)
    row = db.execute("SELECT state FROM turns WHERE conversation = ? AND id = ?", key).fetchone()
    return None if row is None else str(row[0])
