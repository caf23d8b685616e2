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
    assert applied(path) == [(1, "0001_conversations")]

    (newer / "0002_colours.sql").write_text("ALTER TABLE turns ADD COLUMN colour TEXT;\n")
    schema.scripts.cache_clear()
    for _ in range(2):
        with SqliteStore(path) as store:
            store.append("c", said("m2"))
            assert store.fsck() == []

    assert applied(path) == [(1, "0001_conversations"), (2, "0002_colours")]
    (newer / "0002_colours.sql").unlink()
    schema.scripts.cache_clear()
    with pytest.raises(StoreTooNew):
        SqliteStore(path)


def test_a_script_that_fails_changes_nothing(tmp_path: Path, newer: Path) -> None:
    path = tmp_path / "bullpen.db"
    SqliteStore(path).close()
    before = path.read_bytes()

    (newer / "0002_broken.sql").write_text("CREATE TABLE colours (name);\nCREATE TABLE turns (name);\n")
    schema.scripts.cache_clear()
    with pytest.raises(StoreFailed, match="turns already exists"):
        SqliteStore(path)

    assert path.read_bytes() == before
    assert applied(path) == [(1, "0001_conversations")]
