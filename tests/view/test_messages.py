"""A page of messages is shown quickly, and whatever has become of the records of its turns."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bullpen.errors import StoreDamaged
from bullpen.messages import ConversationMessage, Routing
from bullpen.store import packing, turn_rows
from bullpen.store.base import TurnEnd
from bullpen.store.packing import StreamPacker
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, MAX, OWNER, asked, begin, dead, said
from bullpen.view.messages import MOST_LOOKED_THROUGH, shown_messages

TEXT = json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello."}]}}) + "\n"
STREAMS = {
    "only text": TEXT.encode(),
    "a little more than is looked through": b" " * MOST_LOOKED_THROUGH + TEXT.encode(),
    "a long line, repeated": TEXT.encode() * 100_000,
    "what cannot be packed": os.urandom(2 * MOST_LOOKED_THROUGH),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A conversation in which one agent answers several times, with another output each time."""
    path = tmp_path / "a.db"
    with SqliteStore(path) as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        store.append("c", said("q"), owner=OWNER)
        for number, stream in enumerate(STREAMS.values()):
            turn = asked("q", turn_id=str(number))
            store.update("c", at=1, turns=[turn], owner=OWNER)
            store.start_turn("c", turn.id, owner=OWNER, given=GIVEN, at=1)
            packer = StreamPacker()
            packer.feed(stream)
            end = TurnEnd(turn_id=turn.id, state="done", at=2, stream=packer.finish())
            store.append("c", answer(f"m{number}"), finishes=end, owner=OWNER)
        store.release("c", OWNER)
    return path


def answer(message_id: str) -> ConversationMessage:
    return ConversationMessage(
        id=message_id, content="Done.", speaker=MAX, timestamp=2, routing=Routing(parent_message_id="q")
    )


def has_steps(path: Path) -> list[bool]:
    with SqliteStore(path) as store:
        return [shown.has_steps for shown in shown_messages(store, "c")][1:]


def test_a_turn_with_much_output_probably_did_something(path: Path) -> None:
    assert has_steps(path) == [False, True, True, True]


def test_a_page_unpacks_no_more_of_a_record_than_it_looks_through(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []

    def counted(blob: object) -> bytes:
        unpacked.append(len(data := packing.unpacked(blob)))
        return data

    monkeypatch.setattr(turn_rows, "unpacked", counted)
    has_steps(path)
    assert max(unpacked) <= MOST_LOOKED_THROUGH


@pytest.mark.parametrize("column", ["streams.stream", "streams.command", "prompts.report"])
def test_one_damaged_record_hides_no_message_and_stops_nobody(path: Path, column: str) -> None:
    table, _, name = column.partition(".")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (blob,) = db.execute(f"SELECT {name} FROM {table} WHERE turn = 1").fetchone()
        db.execute(f"UPDATE {table} SET {name} = ? WHERE turn = 1", (blob[:-1] + bytes([blob[-1] ^ 1]),))

    with SqliteStore(path) as store:
        shown = shown_messages(store, "c")
        assert [one.message.id for one in shown] == ["q", "m0", "m1", "m2", "m3"]
        assert shown[1].has_steps
        store.append("c", said("more"))
        # Who asks for it is told.
        with pytest.raises(StoreDamaged):
            store.record("c", "0")
