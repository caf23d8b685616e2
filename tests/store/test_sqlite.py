"""The embedded store keeps the contract, and any text."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.store.properties import CONVERSATIONS, TEXT, TEXTS, Written, check_any_piece, check_any_text

from bullpen.store.base import Store, TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import (
    GIVEN,
    OTHER,
    OWNER,
    StoreContract,
    asked,
    begin,
    dead,
    read_stream,
    said,
    start,
)


class TestSqliteStore(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "bullpen.db")


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "bullpen.db"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversation=CONVERSATIONS, query=TEXT)
def test_any_text_comes_back_as_it_was(path: Path, conversation: Written, query: str) -> None:
    path.unlink(missing_ok=True)
    check_any_text(lambda: SqliteStore(path), conversation, query)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS, data=st.data())
def test_any_piece_of_what_was_said_is_found(path: Path, texts: list[str], data: st.DataObject) -> None:
    path.unlink(missing_ok=True)
    check_any_piece(lambda: SqliteStore(path), texts, data)


def test_a_prompt_that_repeats_the_one_before_is_stored_as_a_difference(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        for number in range(1, 4):
            text = "\n".join(f"line {line} of the history, as it was said" for line in range(100 + number))
            store.append("c", said(f"m{number}"), turns=[asked(f"m{number}", "max", turn_id=str(number))], owner=OWNER)
            store.start_turn("c", str(number), owner=OWNER, given=replace(GIVEN, prompt=text), at=number)
            store.end_turn("c", TurnEnd(turn_id=str(number), state="failed", at=number), owner=OWNER)
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("SELECT count(*) FROM prompts WHERE base IS NOT NULL").fetchone() == (2,)


def test_damaged_output_of_a_running_turn_is_found_and_stops_nothing(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        start(store)
        store.keep_output("c", "m1-max", b"first ", owner=OWNER)
        store.keep_output("c", "m1-max", b"second", owner=OWNER)
    with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
        db.execute("UPDATE stream_parts SET data = x'00112233445566' WHERE number = 2")
    with SqliteStore(tmp_path / "a.db") as store:
        store.claim("c", OTHER, is_alive=dead)
        store.recover("c", at=140, owner=OTHER)
        assert read_stream(store) == b"first "
        store.append("c", said("m2"), owner=OTHER)
