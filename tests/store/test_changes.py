"""What changed in folders, in the file: nothing of it can be altered unnoticed, and old files get a place for it."""

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests import forked

from bullpen.errors import StoreDamaged
from bullpen.file_changes import FolderChanges
from bullpen.store import change_rows, schema
from bullpen.store.backup import back_up, restore
from bullpen.store.conversation_rows import OR_OWNED, UNSETTLED
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import CHANGES, FOLDER, OWNER, alive, asked, begin, said, start, without_patch

OTHER_PATCH = replace(CHANGES, changes=replace(CHANGES.changes, patch="diff --git a/y b/y\n"))


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
        "record = (SELECT record FROM changes WHERE sequence = 2)",
        "patch = NULL",
        "patch = 7",
        "patch = substr(patch, 1, length(patch) - 1)",
        "patch = (SELECT patch FROM changes WHERE sequence = 2)",
        "sequence = 3",
        "turn = 'm2-max'",
        "folder = '/elsewhere'",
        "folder = x'ff'",
        "after_message = 0",
        "finished = NULL",
        "finished = 7",
        "is_copy = 1",
    ],
)
def test_one_that_was_changed_is_found_and_not_read(store: SqliteStore, path: Path, change: str) -> None:
    store.add_changes("c", CHANGES, owner=OWNER)
    untouched = store.add_changes("c", OTHER_PATCH, owner=OWNER)
    store.close()
    tampered(path, f"UPDATE changes SET {change} WHERE sequence = 1")

    with SqliteStore(path) as again:
        (finding,) = again.fsck("c")
        assert (finding.conversation_id, finding.kind) == ("c", "record")
        assert "cannot be read" in finding.text
        with pytest.raises(StoreDamaged):
            again.changes("c")
        if change != "finished = 7":
            assert again.last_changes("c", FOLDER) == untouched


def test_one_that_no_message_leads_to_is_found(store: SqliteStore, path: Path) -> None:
    store.add_changes("c", CHANGES, owner=OWNER)
    store.close()
    tampered(path, "UPDATE changes SET after_message = 'x'")

    with SqliteStore(path) as again:
        assert [finding.kind for finding in again.fsck("c")] == ["record"]


def test_a_begun_one_that_was_declared_done_is_found(store: SqliteStore, path: Path) -> None:
    store.add_changes("c", replace(CHANGES, kind="undo", state="begun"), owner=OWNER)
    store.close()
    tampered(path, "UPDATE changes SET finished = 1")

    with SqliteStore(path) as again:
        with pytest.raises(StoreDamaged):
            again.last_changes("c", FOLDER)
        assert [finding.kind for finding in again.fsck("c")] == ["record"]


def test_one_of_a_turn_that_does_not_exist_is_found(store: SqliteStore, path: Path) -> None:
    store.add_changes("c", CHANGES, owner=OWNER)
    store.copy_changes("c", [replace(CHANGES, number=2, turn_id="there")], owner=OWNER)
    assert store.fsck() == []
    store.close()
    tampered(path, "UPDATE turns SET id = 'm9-max'")

    with SqliteStore(path) as again:
        problem = "changes number 1 are of turn 'm1-max', which does not exist"
        assert [(finding.kind, finding.text) for finding in again.fsck("c")] == [("turn", problem)]


def test_one_after_a_message_that_is_gone_is_found(store: SqliteStore, path: Path) -> None:
    store.append("c", said("m2"), owner=OWNER)
    store.add_changes("c", replace(CHANGES, after_message=2), owner=OWNER)
    store.close()
    tampered(path, "UPDATE states SET messages = 1")

    with SqliteStore(path) as again:
        texts = [finding.text for finding in again.fsck("c")]
        assert "changes number 1 came after message 2, which does not exist" in texts


def test_one_with_a_patch_of_no_files_is_found(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_rows, "_check", lambda *_, **__: None)
    store.add_changes("c", replace(CHANGES, changes=replace(CHANGES.changes, files=())), owner=OWNER)

    assert [finding.text for finding in store.fsck("c")] == ["changes number 1 have a patch, but name no files"]


def test_without_patches_they_are_not_even_looked_at(store: SqliteStore, path: Path) -> None:
    stored = store.add_changes("c", CHANGES, owner=OWNER)
    store.close()
    tampered(path, "UPDATE changes SET patch = x''")

    with SqliteStore(path) as again:
        expected = [without_patch(stored)]
        assert again.changes("c", patches=False) == expected
        assert again.changes("c", turn_ids=["m1-max"], patches=False) == expected


def test_every_question_is_answered_with_an_index(store: SqliteStore, path: Path) -> None:
    store.close()
    db = sqlite3.connect(path)

    def plan(query: str, *values: object) -> str:
        return " ".join(str(row[-1]) for row in db.execute(f"EXPLAIN QUERY PLAN {query}", values))

    asked_for = {
        "changes_after_messages (conversation=? AND after_message>? AND after_message<?)": (
            f"{change_rows.SELECT} {change_rows.BETWEEN} {change_rows.ORDER}",
            (1, 5, 9),
        ),
        "changes_of_turns (conversation=? AND turn=?)": (
            f"{change_rows.SELECT} {change_rows.OF_TURNS} {change_rows.AND_BETWEEN} {change_rows.ORDER}",
            (1, "[]", 0, 9),
        ),
        "changes_of_folders (conversation=? AND folder=? AND finished>?)": (
            f"{change_rows.SELECT} {change_rows.LAST_OF_FOLDER}",
            (1, "/"),
        ),
        "changes_as_they_finished (conversation=? AND finished=?)": (
            f"{change_rows.SELECT} {change_rows.BEGUN}",
            (1,),
        ),
    }
    for index, (query, values) in asked_for.items():
        assert f"SEARCH changes USING INDEX {index}" in plan(query, *values)
    found = plan(UNSETTLED.format(or_owned=OR_OWNED))
    for index in ("states_with_programs", "states_with_owner", "changes_begun"):
        assert index in found
    for column in ("sequence", "finished"):
        found = plan(f"SELECT max({column}) FROM changes WHERE conversation = ?", 1)
        assert "SEARCH changes USING COVERING INDEX" in found
    db.close()


def test_a_backup_has_them(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    done = store.add_changes("c", CHANGES, owner=OWNER)
    begun = store.add_changes("c", replace(CHANGES, kind="undo", state="begun"), owner=OWNER)
    store.close()

    back_up(path, tmp_path / "backup.db")
    restore(tmp_path / "backup.db", tmp_path / "restored.db")

    with SqliteStore(tmp_path / "restored.db") as restored:
        assert restored.changes("c") == [done, begun]
        assert restored.begun_changes("c") == [begun]
        assert restored.fsck() == []


def test_a_file_of_the_bullpen_before_gets_a_place_for_them(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "sql"
    shutil.copytree(schema.SCRIPTS, older)
    for script in older.glob("*.sql"):
        if script.stem > "0009":
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
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (8,)
    db.close()

    with SqliteStore(path) as again:
        assert again.changes("c") == []
        stored = again.add_changes("c", CHANGES)
        assert again.changes("c") == [stored]
        assert [one.message.id for one in again.messages("c")] == ["m1"]
        assert again.fsck() == []


LIFE = """
import sys
from tests.store.test_changes import BEGUN, UNDO
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import OWNER
with SqliteStore(sys.argv[1]) as store:
    for _ in range(100_000):
        number = store.add_changes("c", BEGUN, owner=OWNER).number
        store.finish_changes("c", number, UNDO, owner=OWNER)
        print(number, flush=True)
"""
UNDO = replace(CHANGES, kind="undo", person="kai")
BEGUN = replace(UNDO, state="begun", changes=FolderChanges(folder=FOLDER, before="b" * 40))


def test_whenever_its_process_is_killed_each_is_as_it_began_or_as_it_ended(store: SqliteStore, path: Path) -> None:
    chance = random.Random(15)
    store.close()
    for _ in range(3):
        command = [sys.executable, "-c", LIFE, str(path)]
        child = forked.start(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(chance.randint(1, 12)):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        child.communicate()
        with SqliteStore(path) as again:
            records = {record.number: record for record in again.changes("c")}
            assert sorted(records) == list(range(1, len(records) + 1))
            assert records[acknowledged].state == "done"
            for number, record in records.items():
                assert record == replace(UNDO if record.state == "done" else BEGUN, number=number)
            for record in again.begun_changes("c"):
                again.finish_changes("c", record.number, UNDO, owner=OWNER)
            assert again.fsck() == []
