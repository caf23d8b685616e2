"""Turns as rows: every change of state is one UPDATE that requires the expected state."""

from collections.abc import Callable, Iterable, Sequence
from sqlite3 import Connection, Cursor
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import PromptReport
from bullpen.errors import TurnConflict, TurnNumberTaken, UnknownTurn
from bullpen.routing.queue import PUT_FIRST, WaitingTurn
from bullpen.store import memory_rows
from bullpen.store.base import Turn, TurnEnd, TurnRecord
from bullpen.store.message_rows import sequence_of
from bullpen.store.packing import DamagedData, packed, packed_size, unpacked, unpacked_if_short
from bullpen.store.text_delta import applied, delta
from bullpen.tools.uses import ToolUse
from bullpen.turn_events import Failed, Usage

MOST_DIFFERENCES = 20
"""Prompts of a member in a row that are stored as differences; the next one is stored completely."""
MOST_PROMPTS = 16
"""Of those that are kept in memory. Each has less than a megabyte."""
CAN_BE_RETRIED = ("failed", "cancelled", "interrupted")

SELECT = """
    SELECT turns.id, turns.member, asking.id, turns.intent, turns.step, turns.state, turns.queued_at, turns.started_at,
        turns.ended_at, retried.id, reply.id, turns.usage, turns.failure, turns.after_message, turns.uses
    FROM turns
        LEFT JOIN messages AS asking ON asking.conversation = turns.conversation AND asking.sequence = turns.asked_by
        LEFT JOIN messages AS reply ON reply.conversation = turns.conversation AND reply.sequence = turns.reply
        LEFT JOIN turns AS retried ON retried.number = turns.retry_of
    WHERE turns.conversation = ?
"""
MESSAGES = "(SELECT messages FROM states WHERE states.conversation = turns.conversation)"
OPEN = "turns.ended_at IS NULL AND turns.state"

Value = TypeVar("Value")
FindPrompt = Callable[[object], tuple[object, object] | None]
"""Returns the prompt of a turn, by the number of its row, and the turn whose prompt it differs from."""


def queue(db: Connection, conversation: int, turns: Iterable[WaitingTurn], at: int) -> None:
    """Add turns at the end of the queue."""
    waiting = tuple(turns)
    if waiting:
        for position, turn in enumerate(waiting, start=_end_of_queue(db, conversation, "max") + 1):
            _insert(db, conversation, turn, at, position=position)


def requeue(db: Connection, conversation: int, turn_id: str, turn: WaitingTurn, at: int) -> None:
    """Add a turn that retries another, before all others."""
    number, state = _number_and_state(db, conversation, turn_id)
    if state not in CAN_BE_RETRIED:
        raise TurnConflict(turn_id, state, " or ".join(CAN_BE_RETRIED))
    if db.execute("SELECT 1 FROM turns WHERE retry_of = ?", (number,)).fetchone():
        raise TurnConflict(turn_id, "already queued again", state)
    _insert(db, conversation, turn, at, position=_end_of_queue(db, conversation, "min") - 1, retry_of=number)


def reorder(db: Connection, conversation: int, turn_ids: Sequence[str]) -> None:
    """Put queued turns before all others."""
    first = _end_of_queue(db, conversation, "min") - len(turn_ids)
    for position, turn_id in enumerate(turn_ids, start=first):
        _step(db, conversation, turn_id, "queued", "position = ?, intent = ?", (position, PUT_FIRST))


def drop(db: Connection, conversation: int, turn_ids: Iterable[str], at: int) -> None:
    """Take turns out of the queue."""
    for turn_id in turn_ids:
        _step(db, conversation, turn_id, "queued", "state = 'dropped', ended_at = ?", (at,))


class KnownPrompt(Struct, frozen=True, kw_only=True):
    """A stored prompt that the next one may repeat."""

    turn: int
    """The number of its row."""
    text: str
    differences: int
    """How many others must be read before it."""


class KnownPrompts:
    """What members of conversations were given last, which the next prompt mostly repeats."""

    def __init__(self) -> None:
        self._prompts: dict[tuple[int, str], KnownPrompt] = {}

    def get(self, key: tuple[int, str]) -> KnownPrompt | None:
        """Return what a member of a conversation was given last, if it is known."""
        return self._prompts.get(key)

    def remember(self, key: tuple[int, str], known: KnownPrompt) -> None:
        """Remember what a member was given, and forget what was remembered longest ago."""
        self._prompts.pop(key, None)
        self._prompts[key] = known
        for oldest in list(self._prompts)[:-MOST_PROMPTS]:
            del self._prompts[oldest]


def start(
    db: Connection,
    conversation: int,
    turn_id: str,
    owner: str,
    given: AssemblerOutput,
    at: int,
    before: KnownPrompt | None = None,
) -> KnownPrompt:
    """Take a turn out of the queue and start it. `before` is the prompt that its member got before, if it is known."""
    changes = "state = 'running', owner = ?, started_at = ?"
    number = _step(db, conversation, turn_id, "queued", changes, (owner, at))
    return _keep_prompt(db, number, given, before)


def _keep_prompt(db: Connection, number: int, given: AssemblerOutput, before: KnownPrompt | None) -> KnownPrompt:
    row, known = prompt_columns(number, given, before)
    db.execute("INSERT INTO prompts (turn, prompt, system, report, base) VALUES (?, ?, ?, ?, ?)", row)
    return known


def prompt_columns(
    number: int, given: AssemblerOutput, before: KnownPrompt | None
) -> tuple[tuple[object, ...], KnownPrompt]:
    """Return turn, prompt, system, report and base as they are stored, and what the next prompt may repeat."""
    system = None if given.system_flag is None else packed(given.system_flag.encode())
    # A report may hold views of the history instead of ids.
    report = packed(msgspec.json.encode(given.report, enc_hook=list))
    data, base, differences = given.prompt.encode(), None, 0
    if before is not None and before.differences < MOST_DIFFERENCES and (found := delta(before.text, given.prompt)):
        data, base, differences = found, before.turn, before.differences + 1
    row = (number, packed(data), system, report, base)
    return row, KnownPrompt(turn=number, text=given.prompt, differences=differences)


def give_again(db: Connection, conversation: int, turn_id: str, given: AssemblerOutput) -> KnownPrompt:
    """Replace the prompt of a running turn, whose agent has not taken the first one."""
    number, state = _number_and_state(db, conversation, turn_id)
    if state != "running":
        raise TurnConflict(turn_id, state, "running")
    db.execute("DELETE FROM prompts WHERE turn = ?", (number,))
    return _keep_prompt(db, number, given, None)


def finish(db: Connection, conversation: int, end: TurnEnd, reply: int) -> None:
    """End a running turn with a message."""
    check_end(end, has_reply=True)
    _end(db, conversation, end, reply)
    if end.memory is not None:
        memory_rows.add(db, conversation, end.turn_id, end.memory)


def end(db: Connection, conversation: int, end: TurnEnd) -> None:
    """End a running turn without a message."""
    check_end(end, has_reply=False)
    _end(db, conversation, end, None)


def check_end(end: TurnEnd, *, has_reply: bool) -> None:
    """Raise ValueError unless a turn is done with a reply, or is not done without one."""
    if has_reply and end.state != "done":
        raise ValueError(f"A turn with a reply is done, not {end.state}.")
    if not has_reply and end.state == "done":
        raise ValueError("A turn is done when its reply is appended.")


def interrupt(db: Connection, conversation: int, owner: str | None, at: int) -> list[Turn]:
    """End the running turns of all but the current owner, and return them."""
    lost = f"{SELECT} AND {OPEN} = 'running' AND turns.owner IS NOT ? ORDER BY turns.number"
    turns = [turn_from(row) for row in db.execute(lost, (conversation, owner))]
    for turn in turns:
        changes = f"state = 'interrupted', ended_at = max(started_at, ?), after_message = {MESSAGES}"
        number = _step(db, conversation, turn.id, "running", changes, (at,))
        output, is_cut = _output_so_far(db, number)
        if output:
            _keep_stream(db, interrupted_columns(number, output, is_cut=is_cut))
    return [find(db, conversation, turn.id) for turn in turns]


def adopt(db: Connection, conversation: int, turn_ids: Sequence[str], owner: str) -> None:
    """Make running turns an owner's."""
    update = "UPDATE turns SET owner = ? WHERE conversation = ? AND id = ? AND state = 'running'"
    db.executemany(update, [(owner, conversation, turn_id) for turn_id in turn_ids])


def interrupted_columns(number: int, output: bytes, *, is_cut: bool) -> tuple[object, ...]:
    """Return turn, command and stream of a turn that was interrupted, as they are stored."""
    return number, packed(msgspec.json.encode(((), is_cut))), packed(output)


def keep_output(db: Connection, conversation: int, turn_id: str, data: bytes) -> None:
    """Add to what a running turn has written; nothing if it has just ended."""
    number, state = _number_and_state(db, conversation, turn_id)
    if state == "running":
        db.execute("INSERT INTO stream_parts (turn, data) VALUES (?, ?)", (number, packed(data)))


def highest_number(db: Connection, conversation: int) -> int:
    """Return the highest of all ids that are numbers, or 0. The index of this expression makes it fast."""
    query = "SELECT max(CAST(id AS INTEGER)) FROM turns WHERE conversation = ?"
    return int(db.execute(query, (conversation,)).fetchone()[0] or 0)


def unanswered(db: Connection, conversation: int, first: int, last: int) -> list[Turn]:
    """Return the turns that ended without a reply after one of these messages, in their order."""
    between = "turns.after_message BETWEEN ? AND ? ORDER BY turns.after_message, turns.ended_at, turns.number"
    return [turn_from(row) for row in db.execute(f"{SELECT} AND {between}", (conversation, first, last))]


def all_of(db: Connection, conversation: int, message_id: str | None) -> list[Turn]:
    """Return every turn, or those that one message asked for, oldest first."""
    if message_id is None:
        rows = db.execute(f"{SELECT} ORDER BY turns.number", (conversation,))
    else:
        asked_by = sequence_of(db, conversation, message_id)
        rows = db.execute(f"{SELECT} AND turns.asked_by = ? ORDER BY turns.number", (conversation, asked_by))
    return [turn_from(row) for row in rows]


def asked_by(db: Connection, conversation: int, first: int, last: int) -> list[Turn]:
    """Return the turns that some messages asked for, in the order of the messages."""
    between = "turns.asked_by BETWEEN ? AND ? ORDER BY turns.asked_by, turns.number"
    return [turn_from(row) for row in db.execute(f"{SELECT} AND {between}", (conversation, first, last))]


def open_in(db: Connection, conversation: int, state: str) -> list[Turn]:
    """Return the queued or the running turns, in the order of the queue."""
    rows = db.execute(f"{SELECT} AND {OPEN} = ? ORDER BY turns.position", (conversation, state))
    return [turn_from(row) for row in rows]


def find(db: Connection, conversation: int, turn_id: str) -> Turn:
    """Return one turn, or raise UnknownTurn."""
    row = db.execute(f"{SELECT} AND turns.id = ?", (conversation, turn_id)).fetchone()
    if row is None:
        raise UnknownTurn(turn_id)
    return turn_from(row)


def record(db: Connection, conversation: int, turn_id: str, *, prompt: bool = True) -> TurnRecord | None:
    """Return the prompt, unless nobody wants it, and the output of a turn so far."""
    number, _ = _number_and_state(db, conversation, turn_id)
    row = db.execute(
        "SELECT prompt, base, system, report, command, stream FROM prompts LEFT JOIN streams USING (turn)"
        " WHERE turn = ?",
        (number,),
    ).fetchone()
    if row is None:
        return None
    found = read_record(finder(db), row if prompt else (packed(b""), None, *row[2:]))
    return found if row[-2] is not None else replace(found, stream=_output_so_far(db, number)[0])


def short_record(db: Connection, conversation: int, turn_id: str, most: int) -> TurnRecord | None:
    """Return what a turn has left, without its prompt; None if its output is longer than this, or cannot be read.

    A longer stream is not even read from the disk.
    """
    number, _ = _number_and_state(db, conversation, turn_id)
    row = db.execute(
        "SELECT system, report, command, CASE WHEN length(stream) <= ? THEN stream END, length(stream)"
        " FROM prompts JOIN streams USING (turn) WHERE turn = ?",
        (packed_size(most), number),
    ).fetchone()
    if row is None or (row[-1] is not None and row[-2] is None):
        return None
    try:
        stream = b"" if row[-2] is None else unpacked_if_short(row[-2], most)
        empty = packed(b"")
        if stream is None:
            return None
        return replace(read_record(finder(db), (empty, None, *row[:3], empty)), stream=stream)
    except DamagedData:
        return None


def finder(db: Connection) -> FindPrompt:
    """Return what finds prompts."""
    return lambda turn: db.execute("SELECT prompt, base FROM prompts WHERE turn = ?", (turn,)).fetchone()


def read_record(find_prompt: FindPrompt, row: tuple[object, ...]) -> TurnRecord:
    """Return the record in a row, or raise DamagedData."""
    prompt, base, system, report, ending, stream = row
    command, is_cut = ((), False) if ending is None else _read(ending, tuple[tuple[str, ...], bool])
    return TurnRecord(
        prompt=_whole_prompt(find_prompt, prompt, base),
        system=None if system is None else unpacked(system).decode(),
        report=_read(report, PromptReport),
        command=command,
        stream=b"" if stream is None else unpacked(stream),
        stream_is_cut=is_cut,
    )


def _whole_prompt(find_prompt: FindPrompt, blob: object, base: object) -> str:
    """Return a prompt that is stored completely, or as the difference from another one."""
    differences: list[bytes] = []
    while base is not None:
        differences.append(unpacked(blob))
        row = find_prompt(base)
        if row is None or len(differences) > MOST_DIFFERENCES:
            raise DamagedData("the prompt that a prompt differs from cannot be found")
        blob, base = row
    text = unpacked(blob).decode()
    for difference in reversed(differences):
        text = applied(text, difference)
    return text


def _end(db: Connection, conversation: int, end: TurnEnd, reply: int | None) -> None:
    place = "" if end.state == "done" else f", after_message = {MESSAGES}"
    changes = f"state = ?, ended_at = ?, reply = ?, usage = ?, failure = ?, uses = ?{place}"
    values = (end.state, end.at, reply, *map(packed_json, (end.usage, end.failure, end.uses or None)))
    number = _step(db, conversation, end.turn_id, "running", changes, values)
    _keep_stream(db, stream_columns(number, end))


def stream_columns(number: int, end: TurnEnd) -> tuple[object, ...]:
    """Return turn, command and stream as they are stored."""
    stream, is_cut = (None, False) if end.stream is None else (end.stream.data, end.stream.is_cut)
    return number, packed(msgspec.json.encode((end.command, is_cut))), stream


def _keep_stream(db: Connection, row: tuple[object, ...]) -> None:
    """Store all that a turn has written, in place of the parts."""
    db.execute("INSERT INTO streams (turn, command, stream) VALUES (?, ?, ?)", row)
    db.execute("DELETE FROM stream_parts WHERE turn = ?", row[:1])


def _output_so_far(db: Connection, number: int) -> tuple[bytes, bool]:
    """Return what was kept of a turn's output, and whether something is missing at its end because it is damaged."""
    rows = db.execute("SELECT data FROM stream_parts WHERE turn = ? ORDER BY number", (number,))
    return joined_parts(data for (data,) in rows)


def joined_parts(blobs: Iterable[object]) -> tuple[bytes, bool]:
    """Return what these parts of an output hold, up to the first that is damaged, and whether there is one."""
    parts: list[bytes] = []
    for data in blobs:
        try:
            parts.append(unpacked(data))
        except DamagedData:
            return b"".join(parts), True
    return b"".join(parts), False


def _insert(
    db: Connection, conversation: int, turn: WaitingTurn, at: int, *, position: int, retry_of: int | None = None
) -> None:
    key = (conversation, turn.id)
    taken = db.execute("SELECT state FROM turns WHERE conversation = ? AND id = ?", key).fetchone()
    if taken is not None:
        raise TurnNumberTaken(turn.id, taken[0])
    asked_by = sequence_of(db, conversation, turn.message_id)
    db.execute(
        "INSERT INTO turns (conversation, id, member, asked_by, intent, step, position, state, retry_of, queued_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?)",
        (*key, turn.member, asked_by, turn.intent, turn.step, position, retry_of, at),
    )


def _end_of_queue(db: Connection, conversation: int, end: Literal["min", "max"]) -> int:
    """Return the position of the first or the last open turn."""
    query = f"SELECT {end}(position) FROM turns WHERE conversation = ? AND ended_at IS NULL"  # noqa: S608
    (place,) = db.execute(query, (conversation,)).fetchone()
    return place or 0


def _step(
    db: Connection, conversation: int, turn_id: str, expected: str, changes: str, values: tuple[object, ...]
) -> int:
    """Change a turn that is in the expected state, and return its number; else raise TurnConflict."""
    update = f"UPDATE turns SET {changes} WHERE conversation = ? AND id = ? AND state = ?"  # noqa: S608
    cursor: Cursor = db.execute(update, (*values, conversation, turn_id, expected))
    number, state = _number_and_state(db, conversation, turn_id)
    if cursor.rowcount != 1:
        raise TurnConflict(turn_id, state, expected)
    return number


def _number_and_state(db: Connection, conversation: int, turn_id: str) -> tuple[int, str]:
    key = (conversation, turn_id)
    row = db.execute("SELECT number, state FROM turns WHERE conversation = ? AND id = ?", key).fetchone()
    if row is None:
        raise UnknownTurn(turn_id)
    return row[0], row[1]


def turn_from(row: tuple[object, ...]) -> Turn:
    """Return the turn in a row of SELECT, or raise DamagedData."""
    *fields, usage, failure, after_message, uses = row
    names = Turn.__struct_fields__[: len(fields)]
    try:
        return msgspec.convert(
            {
                **dict(zip(names, fields, strict=True)),
                "usage": None if usage is None else _read(usage, Usage),
                "failure": None if failure is None else _read(failure, Failed),
                "after_message": after_message,
                "uses": () if uses is None else _read(uses, tuple[ToolUse, ...]),
            },
            Turn,
        )
    except msgspec.MsgspecError as error:
        raise DamagedData(f"a turn cannot be read: {error}") from error


def packed_json(value: Usage | Failed | tuple[ToolUse, ...] | None) -> bytes | None:
    """Return what a turn used, why it failed, or what it did with tools, as it is stored."""
    return None if value is None else packed(msgspec.json.encode(value))


def _read(blob: object, type_: type[Value]) -> Value:
    try:
        return msgspec.json.decode(unpacked(blob), type=type_)
    except msgspec.MsgspecError as error:
        raise DamagedData(f"part of a turn cannot be read: {error}") from error
