"""Conversations are copied from one store to another whole, or not at all."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from bullpen.errors import ConversationDiffers, ConversationInUse, StoreDamaged
from bullpen.exchange.moving import move
from bullpen.store.base import Decision, StateChange, TurnEnd
from bullpen.store.packing import StreamPacker
from bullpen.store.sqlite import SqliteStore
from bullpen.store.transfer import CONVERSATION, STATE, TABLES, Transferable, digest_of
from bullpen.testing.store_contract import (
    ANSWERED,
    ASKED,
    CHANGES,
    CHECK,
    GIVEN,
    MAX,
    MEMORY,
    OWNER,
    RED,
    asked,
    begin,
    dead,
    everything,
    said,
)
from bullpen.tools.uses import ToolUse
from bullpen.turn_events import Failed, Usage


def fill(store: Transferable) -> None:
    """Write a conversation with something in every table."""
    store.create(
        "c", team="队", team_file="lead = 1", team_path="/x", started_at=1, team_task="Ship\0it", extra={"a": [1]}
    )
    store.claim("c", OWNER, is_alive=dead)
    store.append(
        "c", said("m1", "你好 \0 nul"), turns=[asked("m1", name) for name in ("max", "sarah", "ana")], owner=OWNER
    )
    long = replace(GIVEN, prompt="\n".join(f"line {number} of the history, as it was said" for number in range(100)))
    for turn_id in ("m1-max", "m1-sarah"):
        store.start_turn("c", turn_id, owner=OWNER, given=long, at=110)
    store.keep_output("c", "m1-sarah", b"so far", owner=OWNER)
    packer = StreamPacker()
    packer.feed(b'{"event":"text"}\n' * 100)
    memory = replace(MEMORY, session_id="session")
    end = TurnEnd(
        turn_id="m1-max",
        state="done",
        at=150,
        usage=Usage(cost_usd=0.5),
        stream=packer.finish(),
        memory=memory,
        uses=(ToolUse(kind="look up", words="read #1", bytes=7),),
    )
    store.append("c", said("m2", "long " * 500, speaker=MAX), finishes=end, owner=OWNER)
    store.add_changes("c", CHANGES, owner=OWNER)
    store.add_changes("c", replace(CHANGES, kind="undo", state="begun"), owner=OWNER)
    store.add_check("c", CHECK, owner=OWNER)
    store.add_check("c", replace(RED, number=0), owner=OWNER)
    store.note_approval("c", ASKED, owner=OWNER)
    store.append("c", said("m3"), turns=[asked("m3", turn_id="7")], owner=OWNER)
    store.note_approval("c", ANSWERED, owner=OWNER)
    store.note_approval("c", replace(ASKED, turn_id="m1-sarah"), owner=OWNER)
    store.start_turn("c", "7", owner=OWNER, given=long, at=111)
    failed = TurnEnd(turn_id="7", state="failed", at=160, failure=Failed(kind="crashed", message="It ended."))
    decision = Decision(at=170, person="kai", choice="retry", turns=("7",))
    store.end_turn(
        "c", failed, change=StateChange(paused="why", progress={"n": 1}, title="名", decision=decision), owner=OWNER
    )
    store.requeue("c", "7", asked("m3", turn_id="8"), at=180, owner=OWNER)
    store.release("c", OWNER)


@pytest.fixture
def source(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "a.db")
    fill(store)
    return store


def test_everything_is_copied_and_nothing_is_taken(source: SqliteStore, tmp_path: Path) -> None:
    begin(source, "empty")
    with source, SqliteStore(tmp_path / "b.db") as target:
        before = everything(source)
        moved = list(move(source, target))

        assert [(one.id, one.messages, one.was_there) for one in moved] == [("empty", 0, False), ("c", 3, False)]
        with source.copying_out("c") as one, target.copying_out("c") as other:
            assert digest_of(one) == digest_of(other)
        assert everything(target) == everything(source) == before
        assert target.decisions("c") == source.decisions("c") != []
        assert target.memories("c") == source.memories("c") != []
        assert target.record("c", "7") == source.record("c", "7") is not None
        assert [found.message_id for found in target.search("你好")] == ["m1"]
        assert target.fsck() == []


def test_a_table_without_rows_would_prove_nothing(source: SqliteStore) -> None:
    with source, source.copying_out("c") as copied:
        rows = {table.name: list(copied.rows(table)) for table in TABLES}

    assert all(rows.values())
    for table in TABLES:
        columns = zip(*rows[table.name], strict=True)
        assert [name for name, values in zip(table.columns, columns, strict=True) if set(values) == {None}] == []


def test_every_column_is_copied(source: SqliteStore, tmp_path: Path) -> None:
    source.close()
    own = {"number", "conversation"}
    not_copied = {"conversations": own | {"deleted_at"}, "states": own | {"messages", "head", "owner"}}
    as_messages = {"messages", "speakers", "migrations", "indexed"}
    copied = {table.name: set(table.columns) for table in TABLES}
    copied |= {"conversations": set(CONVERSATION), "states": set(STATE)}
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {name: {row[1] for row in db.execute(f"PRAGMA table_info({name})")} for name in names}

    stored = {name: found for name, found in columns.items() if name not in as_messages and not name.startswith("said")}
    assert {name: found - not_copied.get(name, own) for name, found in stored.items()} == copied


def test_a_second_move_finds_the_same(source: SqliteStore, tmp_path: Path) -> None:
    with source, SqliteStore(tmp_path / "b.db") as target:
        list(move(source, target))
        (again,) = move(source, target, ["c"])

    assert again.was_there


@pytest.mark.parametrize("change", ["said", "decided", "deleted"])
def test_another_conversation_with_the_same_id_is_not_touched(source: SqliteStore, tmp_path: Path, change: str) -> None:
    with source, SqliteStore(tmp_path / "b.db") as target:
        list(move(source, target))
        if change == "said":
            target.append("c", said("m4"))
        elif change == "decided":
            target.update("c", at=1, change=StateChange(decision=Decision(at=1, person="kai", choice="continue")))
        else:
            target.delete("c", at=1)
        before = target.conversations()

        with pytest.raises(ConversationDiffers, match=r"'c' is in .*b\.db already"):
            list(move(source, target))
        assert target.conversations() == before


def test_one_in_which_nothing_was_said_makes_room(source: SqliteStore, tmp_path: Path) -> None:
    with source, SqliteStore(tmp_path / "b.db") as target:
        begin(target, "c")
        (moved,) = move(source, target)

        assert (moved.was_there, target.conversation("c").messages) == (False, 3)


def test_what_is_open_or_damaged_is_not_copied(source: SqliteStore, tmp_path: Path) -> None:
    with source, SqliteStore(tmp_path / "b.db") as target:
        source.claim("c", OWNER, is_alive=dead)
        with pytest.raises(ConversationInUse):
            list(move(source, target))
        source.release("c", OWNER)
        with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
            db.execute("UPDATE prompts SET report = x'00112233445566' WHERE turn = 1")
        with pytest.raises(StoreDamaged, match="the record of turn 'm1-max' cannot be read"):
            list(move(source, target))

        assert target.conversations() == []
