"""What changed beside messages: in its order, and only what belongs to them."""

from pathlib import Path

import pytest
from tests.web.changed_files import ID, write_changed

from bullpen.errors import UnknownChange, UnknownTurn
from bullpen.store.sqlite import SqliteStore
from bullpen.view.change_reading import (
    ChangeLine,
    ChangeLines,
    change_page,
    late_lines,
    lines_beside,
    one_change,
    turn_patch,
)
from bullpen.view.messages import shown_messages
from bullpen.view.unanswered import UnansweredTurn


def line(number: int, at: int, *, kind: str = "people", turn: str = "") -> ChangeLine:
    return ChangeLine(number=number, kind=kind, turn=turn, after=3, at=at, short="1 file", words="")  # type: ignore[arg-type]


def ended(turn: str, at: int) -> UnansweredTurn:
    return UnansweredTurn(turn=turn, member="max", state="failed", after=3, at=at, heading="", summary="", reason="")


def test_what_follows_a_message_is_in_the_order_in_which_it_happened() -> None:
    lines = ChangeLines(lines=(line(1, 10), line(2, 15, kind="turn", turn="4"), line(3, 30), line(4, 99)))
    first, second = ended("4", 20), ended("5", 40)

    found = lines.after(3, [first, second])

    by_number = {one.number: one for one in lines.lines}
    assert found == [by_number[1], first, by_number[2], by_number[3], second, by_number[4]]
    assert lines.after(2, []) == []


def test_a_page_of_messages_has_what_belongs_to_it_and_no_more(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        write_changed(store)
        pages = [shown_messages(store, ID, before=2), shown_messages(store, ID, after=1), shown_messages(store, ID)]
        found = [sorted(one.number for one in lines_beside(store, ID, page).lines) for page in pages]
        nothing = lines_beside(store, ID, [])
        late = [one.number for one in late_lines(store, ID, 3)]

    assert found == [[], [1, 2, 3, 4], [1, 2, 3, 4]]
    assert nothing.lines == ()
    assert late == [1, 2, 3, 4]


def test_what_is_not_there_is_said_so(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        write_changed(store)
        with pytest.raises(UnknownChange, match="number 5"):
            one_change(store, ID, 5)
        with pytest.raises(UnknownTurn):
            change_page(store, ID, turn_id="9")
        with pytest.raises(UnknownTurn):
            turn_patch(store, ID, "9")
