"""Turns that ended without a reply, in words."""

from pathlib import Path

import pytest

from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, OTHER, OWNER, asked, begin, dead, said
from bullpen.view.unanswered import unanswered_turn


@pytest.mark.parametrize(("seen_at", "words"), [(900, ""), (1000, ""), (6000, " after 5.0 s")])
def test_how_long_a_killed_turn_took_is_said_only_if_it_is_known(tmp_path: Path, seen_at: int, words: str) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        store.append("c", said("m1"), turns=[asked("m1", "max", turn_id="1")], owner=OWNER)
        store.start_turn("c", "1", owner=OWNER, given=GIVEN, at=1000)
        store.claim("c", OTHER, is_alive=dead)
        store.recover("c", at=seen_at, owner=OTHER)
        assert unanswered_turn(store, "c", "1").heading == f"turn 1 was interrupted{words}"
