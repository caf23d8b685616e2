"""What agents asked and what was answered, in the file: nothing of it can be altered unnoticed."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace
from tests.store.properties import APPROVALS, check_any_approvals

from bullpen.approvals import Answer, ApprovalRecord
from bullpen.errors import StoreDamaged
from bullpen.store import approval_rows, schema
from bullpen.store.backup import back_up, restore
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import ANSWERED, ASKED, OWNER, alive, asked, begin, said, start
from bullpen.turn_events import ApprovalAsked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bullpen.db"


@pytest.fixture
def store(path: Path) -> SqliteStore:
    """Return a store with two questions and their answers."""
    store = SqliteStore(path)
    begin(store, "c")
    store.claim("c", OWNER, is_alive=alive)
    start(store)
    for record in (ASKED, ANSWERED, replace(ASKED, question="q2"), replace(ANSWERED, question="q2")):
        store.note_approval("c", record, owner=OWNER)
    return store


def tampered(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as db:
        for statement in statements:
            assert db.execute(statement).rowcount == 1
    db.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=APPROVALS)
def test_any_question_and_answer_comes_back_as_it_was(path: Path, records: list[ApprovalRecord]) -> None:
    path.unlink(missing_ok=True)
    check_any_approvals(lambda: SqliteStore(path), records)


@pytest.mark.parametrize(
    "change",
    [
        "record = x''",
        "record = 'text'",
        "record = CAST(substr(record, 1, 9) || x'00' || substr(record, 11) AS BLOB)",
        "record = (SELECT record FROM approvals WHERE sequence = 4)",
        "turn = 'm2-max'",
        "question = 'q3'",
        "after_message = 0",
        "hash = 'text'",
    ],
)
def test_what_was_altered_is_found_and_not_shown(store: SqliteStore, path: Path, change: str) -> None:
    store.close()
    tampered(path, f"UPDATE approvals SET {change} WHERE sequence = 2")

    with SqliteStore(path) as again:
        finding, *_ = again.fsck("c")
        assert (finding.kind, finding.text[:26]) == ("record", "approval number 2 cannot b")
        with pytest.raises(StoreDamaged):
            again.approvals("c")


@pytest.mark.parametrize(
    ("record", "number"),
    [
        (replace(ANSWERED, answer=Answer(verdict="yes")), 2),
        (replace(ANSWERED, by="eva"), 2),
        (replace(ANSWERED, at=127), 2),
        (replace(ASKED, asked=ApprovalAsked(id="q1", kind="command", command="rm -rf /")), 1),
    ],
)
def test_another_answer_person_time_or_command_breaks_the_chain(
    store: SqliteStore, path: Path, record: ApprovalRecord, number: int
) -> None:
    store.close()
    values = approval_rows.values_of(*approval_rows.linked(replace(record, number=number, after_message=1), b"", b""))
    db = sqlite3.connect(path)
    # Whoever writes it well, with its checksum.
    db.execute("UPDATE approvals SET record = ? WHERE sequence = ?", (values[5], number))
    db.commit()
    db.close()

    with SqliteStore(path) as again:
        text = f"approval number {number} has changed since it was stored: its hash does not match"
        assert [(one.kind, one.text) for one in again.fsck("c")] == [("changed", text)]


@pytest.mark.parametrize(
    ("statement", "kind", "text"),
    [
        ("DELETE FROM approvals WHERE sequence = 2", "missing", "approvals before number 3 are missing"),
        ("DELETE FROM approvals WHERE sequence = 4", "missing", "its last approval is number 3, not 4"),
        ("UPDATE states SET approvals = 5", "missing", "its last approval is number 4, not 5"),
        ("UPDATE states SET approvals_head = x'00'", "missing", "its last approval is number 4, not 4"),
        ("UPDATE approvals SET is_open = 1 WHERE sequence = 1", "record", "noted as open"),
        ("UPDATE approvals SET hash = x'00' WHERE sequence = 2", "changed", "approval number 2 has changed"),
        ("UPDATE turns SET id = 'other'", "turn", "approval number 1 is of turn 'm1-max', which does not exist"),
        ("UPDATE messages SET hash = x'00'", "changed", "approval number 1 has changed"),
        ("DELETE FROM messages", "turn", "approval number 1 came after message 1, which does not exist"),
    ],
)
def test_what_is_missing_or_moved_is_found(
    store: SqliteStore, path: Path, statement: str, kind: str, text: str
) -> None:
    store.close()
    tampered(path, statement)

    with SqliteStore(path) as again:
        findings = [one for one in again.fsck("c") if text in one.text]
        assert [one.kind for one in findings] == [kind]


def test_they_are_in_a_backup(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    store.note_approval("c", replace(ASKED, question="q3"), owner=OWNER)
    stored, waiting = store.approvals("c"), store.open_approvals("c")
    store.close()
    back_up(path, tmp_path / "backup.db")
    path.unlink()
    restore(tmp_path / "backup.db", path)

    with SqliteStore(path) as restored:
        assert restored.approvals("c") == stored
        assert restored.open_approvals("c") == waiting == stored[4:]


def test_a_backup_is_not_written_if_the_chain_is_broken(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    store.close()
    tampered(path, "DELETE FROM approvals WHERE sequence = 4")

    with pytest.raises(StoreDamaged, match="its last approval is number 3, not 4"):
        back_up(path, tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()


def test_they_move_with_their_conversation(store: SqliteStore, tmp_path: Path) -> None:
    stored = store.approvals("c")
    with SqliteStore(tmp_path / "other.db") as other:
        with store.copying_out("c") as copied:
            other.copy_in(copied)
        assert other.approvals("c") == stored
        assert other.fsck() == []
        other.note_approval("c", replace(ASKED, question="q3"))
        assert other.fsck() == []


def test_they_do_not_move_if_the_chain_is_broken(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    store.close()
    tampered(path, "UPDATE approvals SET hash = x'00' WHERE sequence = 2")
    with SqliteStore(tmp_path / "other.db") as other, SqliteStore(path) as again:
        with again.copying_out("c") as copied, pytest.raises(StoreDamaged, match="approval number 2 has changed"):
            other.copy_in(copied)
        assert other.conversations() == []


def test_looking_for_them_takes_an_index(store: SqliteStore, path: Path) -> None:
    store.close()
    db = sqlite3.connect(path)
    rows = approval_rows
    for index, query, values in (
        ("approvals_after_messages", f"{rows.SELECT} {rows.BETWEEN} {rows.ORDER}", (1, 0, 9)),
        ("sqlite_autoindex_approvals_2", f"{rows.SELECT} {rows.OF_TURNS} {rows.ORDER}", (1, "[]", 0, 9)),
        ("open_approvals", f"{rows.SELECT} {rows.OPEN}", (1,)),
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
        if script.stem > "0011":
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
        assert again.approvals("c") == []
        stored = again.note_approval("c", ASKED)
        assert again.approvals("c") == [stored]
        assert again.fsck() == []
