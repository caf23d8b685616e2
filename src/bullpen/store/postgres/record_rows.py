"""Records of turns as rows: what agents were given, and what came back."""

from msgspec.structs import replace

from bullpen.errors import UnknownTurn
from bullpen.store.base import TurnRecord
from bullpen.store.packing import DamagedData, packed, packed_size, unpacked_if_short
from bullpen.store.postgres.place import CONVERSATION, Place
from bullpen.store.turn_rows import MOST_DIFFERENCES, FindPrompt, joined_parts, read_record

NUMBER = f"(SELECT number FROM turns WHERE conversation = {CONVERSATION} AND id = %(turn)s)"
RECORD = f"""
    SELECT prompt, base, system, report, command, stream FROM prompts LEFT JOIN streams USING (turn)
    WHERE turn = {NUMBER}
"""
# The prompts that it is the difference from, one after the other.
BASES = f"""
    WITH RECURSIVE bases (turn, prompt, base, depth) AS (
        SELECT turn, prompt, base, 0 FROM prompts WHERE turn = (SELECT base FROM prompts WHERE turn = {NUMBER})
        UNION ALL SELECT prompts.turn, prompts.prompt, prompts.base, depth + 1
        FROM bases JOIN prompts ON prompts.turn = bases.base WHERE depth <= {MOST_DIFFERENCES})
    SELECT turn, prompt, base FROM bases
"""
PARTS = f"SELECT data FROM stream_parts WHERE turn = {NUMBER} ORDER BY number"
SHORT = f"""
    SELECT system, report, command, CASE WHEN length(stream) <= %(most)s THEN stream END, length(stream)
    FROM prompts JOIN streams USING (turn) WHERE turn = {NUMBER}
"""


def record(place: Place, turn_id: str, *, prompt: bool = True) -> TurnRecord | None:
    """Return the prompt, unless nobody wants it, and the output of a turn so far."""
    number, bases = place.ask(f"SELECT {NUMBER}", turn=turn_id), place.ask(BASES, turn=turn_id)
    parts, found = place.ask(PARTS, turn=turn_id), place.ask(RECORD, turn=turn_id)
    if place.read(number) == [(None,)]:
        raise UnknownTurn(turn_id)
    known = {turn: (blob, base) for turn, blob, base in bases}
    output = joined_parts(data for (data,) in parts)[0]
    row = found.fetchone()
    if row is None:
        return None
    read = read_record(known.get, row if prompt else (packed(b""), None, *row[2:]))
    return read if row[-2] is not None else replace(read, stream=output)


def short_record(place: Place, turn_id: str, most: int) -> TurnRecord | None:
    """Return what a turn has left, without its prompt; None if its output is longer than this, or cannot be read."""
    number, found = place.ask(f"SELECT {NUMBER}", turn=turn_id), place.ask(SHORT, turn=turn_id, most=packed_size(most))
    if place.read(number) == [(None,)]:
        raise UnknownTurn(turn_id)
    row = found.fetchone()
    if row is None or (row[-1] is not None and row[-2] is None):
        return None
    try:
        stream = b"" if row[-2] is None else unpacked_if_short(row[-2], most)
        empty = packed(b"")
        return None if stream is None else replace(read_record(_nowhere, (empty, None, *row[:3], empty)), stream=stream)
    except DamagedData:
        return None


_nowhere: FindPrompt = lambda _: None  # noqa: E731
