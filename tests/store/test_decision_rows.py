"""Decisions in the store: they are there with what follows from them, go with their conversation, and are checked."""

import sqlite3
from pathlib import Path

import pytest

from bullpen.errors import UnknownTurn
from bullpen.store.base import Decision, StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import begin, said

SKIP = Decision(at=7, person="kim", choice="skip", turns=("3", "4"))


def test_a_decision_is_stored_with_what_it_changes_or_not_at_all(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        begin(store, "c")
        begin(store, "d")
        store.append("c", said("m1"))
        store.update("c", at=7, change=StateChange(paused=None, decision=SKIP))
        with pytest.raises(UnknownTurn):
            store.update("c", at=8, drops=["99"], change=StateChange(decision=SKIP))
        assert store.decisions("c") == [SKIP]
        assert store.decisions("d") == []
    with SqliteStore(tmp_path / "c.db") as store:
        assert store.decisions("c") == [SKIP]


def test_it_goes_with_its_conversation(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        for one in ("deleted", "discarded"):
            begin(store, one)
            store.update(one, at=7, change=StateChange(decision=SKIP))
        store.append("deleted", said("m1"))
        store.delete("deleted", at=8)
        store.discard("discarded")
    db = sqlite3.connect(tmp_path / "c.db")
    assert db.execute("SELECT count(*) FROM decisions").fetchone() == (0,)
    db.close()


@pytest.mark.parametrize("change", ["turns = '['", "turns = '7'", "person = x'ff'", "at = 'x'"])
def test_fsck_finds_one_that_cannot_be_read(change: str, tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        begin(store, "c")
        store.update("c", at=7, change=StateChange(decision=SKIP))
    db = sqlite3.connect(tmp_path / "c.db")
    with db:
        db.execute(f"UPDATE decisions SET {change}")
    db.close()

    with SqliteStore(tmp_path / "c.db") as store:
        (finding,) = store.fsck()

    assert (finding.conversation_id, finding.kind) == ("c", "record")
    assert "a decision cannot be read" in finding.text
