"""A file of an older bullpen is brought up to date, whole or not at all."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.errors import StoreFailed, StoreTooNew
from bullpen.store import schema
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import begin, said

OLD_FILES = Path(__file__).with_name("old_files")


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder of scripts of a newer bullpen; ours is the first."""
    folder = tmp_path / "sql"
    shutil.copytree(schema.SCRIPTS, folder)
    monkeypatch.setattr(schema, "SCRIPTS", folder)
    schema.scripts.cache_clear()
    yield folder
    schema.scripts.cache_clear()


def applied(path: Path) -> list[tuple[int, str]]:
    db = sqlite3.connect(path)
    rows = db.execute("SELECT number, name FROM migrations").fetchall()
    db.close()
    return rows


def test_each_script_is_applied_once(tmp_path: Path, newer: Path) -> None:
    path = tmp_path / "bullpen.db"
    with SqliteStore(path) as store:
        begin(store, "c")
        store.append("c", said("m1"))
    ours = applied(path)
    assert ours[0] == (1, "0001_conversations")
    assert len(ours) == schema.latest_version()

    (newer / "9999_colours.sql").write_text("ALTER TABLE turns ADD COLUMN colour TEXT;\n")
    schema.scripts.cache_clear()
    for _ in range(2):
        with SqliteStore(path) as store:
            store.append("c", said("m2"))
            assert store.fsck() == []

    assert applied(path) == [*ours, (len(ours) + 1, "9999_colours")]
    (newer / "9999_colours.sql").unlink()
    schema.scripts.cache_clear()
    with pytest.raises(StoreTooNew):
        SqliteStore(path)


def test_a_script_that_fails_changes_nothing(tmp_path: Path, newer: Path) -> None:
    path = tmp_path / "bullpen.db"
    SqliteStore(path).close()
    before, ours = path.read_bytes(), applied(path)

    (newer / "9999_broken.sql").write_text("CREATE TABLE colours (name);\nCREATE TABLE turns (name);\n")
    schema.scripts.cache_clear()
    with pytest.raises(StoreFailed, match="turns already exists"):
        SqliteStore(path)

    assert path.read_bytes() == before
    assert applied(path) == ours


def test_a_file_of_the_first_version_opens_with_all_that_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    shutil.copy(OLD_FILES / "version_1.db", path)

    with SqliteStore(path) as store:
        (old,) = store.conversations()
        before = [(stored.message.id, stored.message.content) for stored in store.messages(old.id)]
        store.append(old.id, said("msg-4"))

        assert before == [
            ("d2650d5e5e15b3a2", "你好 [NEXT: max]"),
            ("0123456789abcdef", "Hello."),
            ("own-id", "x" * 5000),
        ]
        assert [turn.state for turn in store.turns(old.id)] == ["done", "queued"]
        assert store.fsck() == []
