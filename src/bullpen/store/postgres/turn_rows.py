"""Turns as rows: what is known of them is asked for at once, then each change of state requires the expected one."""

from collections.abc import Iterable, Sequence
from typing import Literal

from psycopg import Cursor

from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import TurnConflict, TurnNumberTaken, UnknownMessage, UnknownTurn
from bullpen.routing.queue import PUT_FIRST, WaitingTurn
from bullpen.store.base import Turn, TurnEnd
from bullpen.store.packing import packed
from bullpen.store.postgres import memory_rows
from bullpen.store.postgres.connections import Row
from bullpen.store.postgres.place import CONVERSATION, Place
from bullpen.store.turn_rows import (
    CAN_BE_RETRIED,
    KnownPrompt,
    check_end,
    interrupted_columns,
    joined_parts,
    packed_json,
    prompt_columns,
    stream_columns,
    turn_from,
)

SELECT = f"""
    SELECT turns.id, turns.member, asking.id, turns.intent, turns.step, turns.state, turns.queued_at, turns.started_at,
        turns.ended_at, retried.id, reply.id, turns.usage, turns.failure, turns.after_message, turns.uses
    FROM turns
        LEFT JOIN messages AS asking ON asking.conversation = turns.conversation AND asking.sequence = turns.asked_by
        LEFT JOIN messages AS reply ON reply.conversation = turns.conversation AND reply.sequence = turns.reply
        LEFT JOIN turns AS retried ON retried.number = turns.retry_of
    WHERE turns.conversation = {CONVERSATION}
"""
OPEN = "turns.ended_at IS NULL AND turns.state"
KNOWN = f"""
    SELECT id, number, state, member, EXISTS (SELECT 1 FROM turns AS retry WHERE retry.retry_of = turns.number)
    FROM turns WHERE conversation = {CONVERSATION} AND id = ANY(%(turns)s::text[])
"""
ENDS = f"""
    SELECT coalesce(min(position), 0), coalesce(max(position), 0)
    FROM turns WHERE conversation = {CONVERSATION} AND ended_at IS NULL
"""
POSITIONS = f"SELECT id, sequence FROM messages WHERE conversation = {CONVERSATION} AND id = ANY(%(ids)s::text[])"
INSERT = """
    INSERT INTO turns (conversation, id, member, asked_by, intent, step, position, state, retry_of, queued_at)
    VALUES (%(conversation)s, %(turn)s, %(member)s, %(asked_by)s, %(intent)s, %(step)s, %(position)s, 'queued',
        %(retry_of)s, %(at)s)
"""
END = """
    UPDATE turns SET state = %(state)s, ended_at = %(at)s, reply = %(reply)s, usage = %(usage)s, failure = %(failure)s,
        uses = %(uses)s, after_message = %(after)s WHERE number = %(number)s
"""
KEEP_STREAM = "INSERT INTO streams (turn, command, stream) VALUES (%(turn)s, %(command)s, %(stream)s)"
KEEP_PROMPT = """
    INSERT INTO prompts (turn, prompt, system, report, base)
    VALUES (%(turn)s, %(prompt)s, %(system)s, %(report)s, %(base)s)
"""
# Those that another owner started, with what each has written.
LOST = f"""
    SELECT turns.id, turns.number, parts.data FROM turns LEFT JOIN stream_parts AS parts ON parts.turn = turns.number
    WHERE conversation = {CONVERSATION} AND {OPEN} = 'running' AND owner IS DISTINCT FROM %(owner)s
    ORDER BY turns.number, parts.number
"""
# The same expression as in the index.
HIGHEST = f"""
    SELECT coalesce(max(CASE WHEN id ~ '^[0-9]{{1,18}}$' THEN id::bigint ELSE 0 END), 0)
    FROM turns WHERE conversation = {CONVERSATION}
"""


class ChangingTurns:
    """Turns of a locked conversation that are about to change."""

    def __init__(self, place: Place, ids: Iterable[str], *, asked_by: Iterable[str] = (), orders: bool = False) -> None:
        """Ask for turns that may change or be in the way, and for messages that ask for new ones.

        Where the queue begins and ends is known if its order is to change.
        """
        self._place = place
        self._known = place.ask(KNOWN, turns=list(ids))
        others = list(asked_by)
        self._positions = place.ask(POSITIONS, ids=others) if others else None
        self._ends = place.ask(ENDS) if orders else None
        self._states: dict[str, tuple[int, str, str, bool]] | None = None
        self._sequences: dict[str, int] = {}
        self._first = self._last = 0

    @classmethod
    def of(
        cls,
        place: Place,
        new: Sequence[WaitingTurn],
        dropped: Iterable[str],
        finishes: TurnEnd | None = None,
        said: str | None = None,
    ) -> "ChangingTurns | None":
        """Return those that are about to be queued, dropped or finished; None if there are none.

        `said` is a message that is about to be added, which may ask for them.
        """
        queued = [turn.id for turn in new]
        ids = [*queued, *dropped, *(() if finishes is None else (finishes.turn_id,))]
        asked_by = {turn.message_id for turn in new} - {said}
        return cls(place, ids, asked_by=asked_by, orders=bool(queued)) if ids else None

    def _read(self) -> dict[str, tuple[int, str, str, bool]]:
        if self._states is None:
            self._states = {id_: (number, *others) for id_, number, *others in self._place.read(self._known)}
            if self._positions is not None:
                self._sequences |= dict(self._place.read(self._positions))
            if self._ends is not None:
                self._first, self._last = self._place.read(self._ends)[0]
        return self._states

    def said(self, message_id: str, sequence: int) -> None:
        """Let turns be asked for by a message that is added in the same transaction."""
        self._sequences[message_id] = sequence

    def member(self, turn_id: str) -> str:
        """Return whose turn it is, or raise UnknownTurn."""
        return self._need(turn_id)[2]

    def queue(self, turns: Iterable[WaitingTurn], at: int) -> None:
        """Add turns at the end of the queue."""
        for turn in turns:
            self._read()
            self._last += 1
            self._insert(turn, at, position=self._last)

    def requeue(self, turn_id: str, turn: WaitingTurn, at: int) -> None:
        """Add a turn that retries another, before all others."""
        number, state, _, is_retried = self._need(turn_id)
        if state not in CAN_BE_RETRIED:
            raise TurnConflict(turn_id, state, " or ".join(CAN_BE_RETRIED))
        if is_retried:
            raise TurnConflict(turn_id, "already queued again", state)
        self._insert(turn, at, position=self._first - 1, retry_of=number)

    def reorder(self, turn_ids: Sequence[str]) -> None:
        """Put queued turns before all others."""
        self._read()
        update = "UPDATE turns SET position = %(position)s, intent = %(intent)s WHERE number = %(number)s"
        for position, turn_id in enumerate(turn_ids, start=self._first - len(turn_ids)):
            number = self._step(turn_id, "queued", "queued")
            self._place.ask(update, position=position, intent=PUT_FIRST, number=number)

    def drop(self, turn_ids: Iterable[str], at: int) -> None:
        """Take turns out of the queue."""
        for turn_id in turn_ids:
            number = self._step(turn_id, "queued", "dropped")
            update = "UPDATE turns SET state = 'dropped', ended_at = %(at)s WHERE number = %(number)s"
            self._place.ask(update, at=at, number=number)

    def start(
        self, turn_id: str, owner: str, given: AssemblerOutput, at: int, before: KnownPrompt | None
    ) -> KnownPrompt:
        """Take a turn out of the queue and start it. `before` is the prompt that its member got before, if known."""
        number = self._step(turn_id, "queued", "running")
        update = "UPDATE turns SET state = 'running', owner = %(owner)s, started_at = %(at)s WHERE number = %(number)s"
        self._place.ask(update, owner=owner, at=at, number=number)
        return self._keep_prompt(number, given, before)

    def give_again(self, turn_id: str, given: AssemblerOutput) -> KnownPrompt:
        """Replace the prompt of a running turn, whose agent has not taken the first one."""
        number = self._step(turn_id, "running", "running")
        self._place.ask("DELETE FROM prompts WHERE turn = %(turn)s", turn=number)
        return self._keep_prompt(number, given, None)

    def finish(self, end: TurnEnd, reply: int) -> None:
        """End a running turn with a message."""
        check_end(end, has_reply=True)
        number = self._end(end, reply)
        if end.memory is not None:
            memory_rows.add(self._place, number, end.memory)

    def end(self, end: TurnEnd) -> None:
        """End a running turn without a message."""
        check_end(end, has_reply=False)
        self._end(end, None)

    def keep_output(self, turn_id: str, data: bytes) -> None:
        """Add to what a running turn has written; nothing if it has just ended."""
        number, state, _, _ = self._need(turn_id)
        if state == "running":
            insert = "INSERT INTO stream_parts (turn, data) VALUES (%(turn)s, %(data)s)"
            self._place.ask(insert, turn=number, data=packed(data))

    def _end(self, end: TurnEnd, reply: int | None) -> int:
        number = self._step(end.turn_id, "running", end.state)
        self._place.ask(
            END,
            state=end.state,
            at=end.at,
            reply=reply,
            usage=packed_json(end.usage),
            failure=packed_json(end.failure),
            uses=packed_json(end.uses or None),
            after=None if end.state == "done" else self._place.found().messages,
            number=number,
        )
        _keep_stream(self._place, stream_columns(number, end))
        return number

    def _keep_prompt(self, number: int, given: AssemblerOutput, before: KnownPrompt | None) -> KnownPrompt:
        row, known = prompt_columns(number, given, before)
        self._place.ask(KEEP_PROMPT, **dict(zip(("turn", "prompt", "system", "report", "base"), row, strict=True)))
        return known

    def _insert(self, turn: WaitingTurn, at: int, *, position: int, retry_of: int | None = None) -> None:
        states = self._read()
        if turn.id in states:
            raise TurnNumberTaken(turn.id, states[turn.id][1])
        if turn.message_id not in self._sequences:
            raise UnknownMessage(turn.message_id)
        self._place.ask(
            INSERT,
            conversation=self._place.found().number,
            turn=turn.id,
            member=turn.member,
            asked_by=self._sequences[turn.message_id],
            intent=turn.intent,
            step=turn.step,
            position=position,
            retry_of=retry_of,
            at=at,
        )
        # Its number is not known yet; nothing else can happen to it in this transaction.
        states[turn.id] = (0, "queued", turn.member, False)

    def _step(self, turn_id: str, expected: str, following: str) -> int:
        """Change a turn that is in the expected state, and return its number; else raise TurnConflict."""
        number, state, member, is_retried = self._need(turn_id)
        if state != expected or not number:
            raise TurnConflict(turn_id, state, expected)
        self._read()[turn_id] = (number, following, member, is_retried)
        return number

    def _need(self, turn_id: str) -> tuple[int, str, str, bool]:
        states = self._read()
        if turn_id not in states:
            raise UnknownTurn(turn_id)
        return states[turn_id]


def interrupt(place: Place, owner: str | None, at: int) -> list[Turn]:
    """End the running turns of all but the current owner, and return them."""
    lost: dict[tuple[str, int], list[object]] = {}
    for turn_id, number, data in place.all(LOST, owner=owner):
        lost.setdefault((turn_id, number), []).extend(() if data is None else (data,))
    for (_, number), parts in lost.items():
        update = "UPDATE turns SET state = 'interrupted', ended_at = greatest(started_at, %(at)s),"
        place.ask(
            f"{update} after_message = %(after)s WHERE number = %(number)s",
            at=at,
            after=place.found().messages,
            number=number,
        )
        output, is_cut = joined_parts(parts)
        if output:
            _keep_stream(place, interrupted_columns(number, output, is_cut=is_cut))
    ids = [turn_id for turn_id, _ in lost]
    ended = place.all(f"{SELECT} AND turns.id = ANY(%(turns)s::text[]) ORDER BY turns.number", turns=ids)
    return [turn_from(row) for row in ended]


def adopt(place: Place, turn_ids: Sequence[str], owner: str) -> None:
    """Make running turns an owner's."""
    update = "UPDATE turns SET owner = %(owner)s WHERE state = 'running' AND id = ANY(%(turns)s::text[])"
    place.ask(f"{update} AND conversation = {CONVERSATION}", owner=owner, turns=list(turn_ids))


def highest_number(place: Place) -> int:
    """Return the highest of all ids that are numbers, or 0."""
    return int(place.all(HIGHEST)[0][0])


def unanswered(place: Place, first: int, last: int) -> list[Turn]:
    """Return the turns that ended without a reply after one of these messages, in their order."""
    between = "AND turns.after_message BETWEEN %(first)s AND %(last)s"
    order = "ORDER BY turns.after_message, turns.ended_at, turns.number"
    return [turn_from(row) for row in place.all(f"{SELECT} {between} {order}", first=first, last=last)]


def all_of(place: Place, message_id: str | None) -> list[Turn]:
    """Return every turn, or those that one message asked for, oldest first."""
    if message_id is None:
        return [turn_from(row) for row in place.all(f"{SELECT} ORDER BY turns.number")]
    position = place.ask(POSITIONS, ids=[message_id])
    rows = place.ask(f"{SELECT} AND asking.id = %(message)s ORDER BY turns.number", message=message_id)
    if not place.read(position):
        raise UnknownMessage(message_id)
    return [turn_from(row) for row in rows]


def asked_by(place: Place, first: int, last: int) -> list[Turn]:
    """Return the turns that some messages asked for, in the order of the messages."""
    between = "AND turns.asked_by BETWEEN %(first)s AND %(last)s ORDER BY turns.asked_by, turns.number"
    return [turn_from(row) for row in place.all(f"{SELECT} {between}", first=first, last=last)]


def open_in(place: Place, state: Literal["queued", "running"]) -> list[Turn]:
    """Return the queued or the running turns, in the order of the queue."""
    return [
        turn_from(row) for row in place.all(f"{SELECT} AND {OPEN} = %(state)s ORDER BY turns.position", state=state)
    ]


def ask(place: Place, turn_id: str) -> Cursor[Row]:
    """Ask for one turn."""
    return place.ask(f"{SELECT} AND turns.id = %(turn)s", turn=turn_id)


def read(answer: Cursor[Row], turn_id: str) -> Turn:
    """Return the turn that was asked for, or raise UnknownTurn."""
    row = answer.fetchone()
    if row is None:
        raise UnknownTurn(turn_id)
    return turn_from(row)


def _keep_stream(place: Place, row: tuple[object, ...]) -> None:
    """Store all that a turn has written, in place of the parts."""
    turn, command, stream = row
    place.ask(KEEP_STREAM, turn=turn, command=command, stream=stream)
    place.ask("DELETE FROM stream_parts WHERE turn = %(turn)s", turn=turn)
