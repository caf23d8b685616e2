"""What checks said, in the file: nothing of it can be altered unnoticed, and it is in every backup."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from bullpen.errors import StoreDamaged
from bullpen.store import check_rows, schema
from bullpen.store.backup import back_up, restore
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import CHECK, OWNER, RED, alive, asked, begin, said, start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bullpen.db"


@pytest.fixture
def store(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    begin(store, "c")
    store.claim("c", OWNER, is_alive=alive)
    start(store)
    return store


def tampered(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as db:
        assert db.execute(statement).rowcount == 1
    db.close()


@pytest.mark.parametrize(
    "change",
    [
        "record = x''",
        "record = 'text'",
        "record = CAST(substr(record, 1, 9) || x'00' || substr(record, 11) AS BLOB)",
        "record = (SELECT record FROM checks WHERE sequence = 2)",
        "sequence = 3",
        "turn = 'm2-max'",
        "after_message = 0",
        "is_running = 1",
        "is_copy = 1",
    ],
)
def test_what_was_altered_is_found_and_not_shown(store: SqliteStore, path: Path, change: str) -> None:
    for number in (1, 2):
        store.add_check("c", CHECK, owner=OWNER)
        store.finish_check("c", replace(RED, number=number), owner=OWNER)
    store.close()
    tampered(path, f"UPDATE checks SET {change} WHERE sequence = 1")

    with SqliteStore(path) as again:
        (finding,) = again.fsck("c")
        assert finding.kind == "record"
        assert finding.text.startswith("check number")
        with pytest.raises(StoreDamaged):
            again.checks("c")


def test_a_check_without_its_turn_is_found(store: SqliteStore, path: Path) -> None:
    store.add_check("c", CHECK, owner=OWNER)
    store.copy_checks("c", [replace(RED, number=2, turn_id="there")], owner=OWNER)
    store.close()
    tampered(path, "UPDATE turns SET id = 'other'")

    with SqliteStore(path) as again:
        problem = "check number 1 is of turn 'm1-max', which does not exist"
        assert problem in [finding.text for finding in again.fsck("c")]


def test_they_are_in_a_backup(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    store.add_check("c", CHECK, owner=OWNER)
    red = store.finish_check("c", replace(RED, number=1), owner=OWNER)
    running = store.add_check("c", CHECK, owner=OWNER)
    store.close()
    back_up(path, tmp_path / "backup.db")
    path.unlink()
    restore(tmp_path / "backup.db", path)

    with SqliteStore(path) as restored:
        assert restored.checks("c") == [red, running]
        assert restored.running_checks("c") == [running]


def test_looking_for_them_takes_an_index(store: SqliteStore, path: Path) -> None:
    store.close()
    db = sqlite3.connect(path)
    for index, query, values in (
        ("checks_after_messages", f"{check_rows.SELECT} {check_rows.BETWEEN} {check_rows.ORDER}", (1, 0, 9)),
        ("checks_of_turns", f"{check_rows.SELECT} {check_rows.OF_TURNS} {check_rows.ORDER}", (1, "[]", 0, 9)),
        ("running_checks", f"{check_rows.SELECT} {check_rows.RUNNING}", (1,)),
    ):
        plan = db.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
        assert any(f"USING INDEX {index}" in row[-1] for row in plan), plan
    db.close()


def test_a_file_of_the_bullpen_before_gets_a_place_for_them(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "sql"
    shutil.copytree(schema.SCRIPTS, older)
    for script in older.glob("*.sql"):
        if script.stem > "0010":
            script.unlink()
    with monkeypatch.context() as before:
        before.setattr(schema, "SCRIPTS", older)
        # The bullpen before knew nothing of it.
        before.setattr(schema, "_touch", lambda _: None)
        schema.scripts.cache_clear()
        store = SqliteStore(path)
        begin(store, "c")
        store.append("c", said("m1"), turns=[asked("m1")])
        store.close()
    schema.scripts.cache_clear()

    with SqliteStore(path) as again:
        assert again.checks("c") == []
        stored = again.add_check("c", CHECK)
        assert again.checks("c") == [stored]
        assert again.fsck() == []
