"""Which changes an undo takes back, a redo brings back, and a rewind goes to."""

import pytest
from msgspec.structs import replace

from bullpen.conversation.undo_rules import inverse, taken_back, to_redo, to_rewind_to, to_undo
from bullpen.errors import NothingToUndo
from bullpen.file_changes import ChangeKind, ChangeRecord, FileChange, FileState, FolderChanges

EDIT = FileChange(path="a.py", kind="changed", old=FileState(blob="1"), new=FileState(blob="2"), added=3, removed=1)


def record(number: int, kind: ChangeKind = "turn", turn: str = "", *, undoes: int = 0) -> ChangeRecord:
    changes = FolderChanges(folder="/repo", before="b", after="a", files=(EDIT,))
    return ChangeRecord(number=number, kind=kind, turn_id=turn, at=number, undoes=undoes, changes=changes)


TURNS = [record(1, turn="5"), record(2, "people"), record(3, turn="7")]


def test_an_undo_takes_back_the_last_turn_and_not_what_people_changed() -> None:
    assert to_undo(TURNS, None).turn_id == "7"
    assert to_undo([*TURNS, record(4, "people")], None).turn_id == "7"


def test_an_undo_without_a_turn_leaves_what_a_check_changed_and_one_of_the_turn_takes_that_first() -> None:
    checked = [*TURNS, record(4, "check", "7")]
    assert (to_undo(checked, None).number, to_undo(checked, "7").number) == (3, 4)
    undone = [*checked, record(5, "undo", "7", undoes=3)]
    assert (to_undo(undone, None).number, to_undo(undone, "7").number) == (1, 4)


def test_another_undo_takes_back_the_turn_before_it() -> None:
    assert to_undo([*TURNS, record(4, "undo", "7", undoes=3)], None).turn_id == "5"


def test_an_undo_of_a_turn_takes_back_that_one() -> None:
    assert to_undo(TURNS, "5").number == 1


def test_what_is_taken_back_cannot_be_taken_back_again_until_it_is_brought_back() -> None:
    undone = [*TURNS, record(4, "undo", "7", undoes=3)]
    with pytest.raises(NothingToUndo, match="Turn 7 is taken back already"):
        to_undo(undone, "7")
    redone = [*undone, record(5, "redo", "7", undoes=4)]
    assert taken_back(redone) == {4}
    assert to_undo(redone, "7").number == 3


def test_a_redo_brings_back_the_last_undo_and_only_once() -> None:
    undone = [*TURNS, record(4, "undo", "7", undoes=3), record(5, "undo", "5", undoes=1)]
    assert to_redo(undone, None).number == 5
    assert to_redo(undone, "7").number == 4
    redone = [*undone, record(6, "redo", "5", undoes=5)]
    assert to_redo(redone, None).number == 4
    with pytest.raises(NothingToUndo, match="turn 5 is not taken back"):
        to_redo(redone, "5")


def test_who_brings_back_a_whole_turn_has_brought_back_what_was_taken_back_of_it_before() -> None:
    in_part, whole = record(4, "undo", "7"), record(5, "undo", "7", undoes=3)
    assert to_redo([*TURNS, in_part], None).number == 4
    redone = [*TURNS, in_part, whole, record(6, "redo", "7", undoes=5)]
    with pytest.raises(NothingToUndo, match="nothing was taken back"):
        to_redo(redone, None)
    assert to_redo([*redone, record(7, "undo", "7")], "7").number == 7


def test_a_redo_of_a_turn_is_not_one_of_a_rewind_to_it_if_both_were_taken_back() -> None:
    rewound = replace(record(6, "undo", "7", undoes=5), about="rewind")
    undone = [*TURNS, record(4, "undo", "7", undoes=3), record(5, "rewind", "7"), rewound]
    assert to_redo(undone, "7").number == 4
    assert to_redo(undone, None).number == 6
    assert to_redo([*undone, record(7, "redo", "7", undoes=4)], "7").number == 6


def test_an_undo_that_was_not_completed_takes_nothing_back() -> None:
    begun = replace(record(4, "undo", "7", undoes=3), state="begun")
    assert to_undo([*TURNS, begun], None).turn_id == "7"


def test_what_was_merged_is_taken_back_where_it_was_merged_to() -> None:
    merged = [record(1, turn="5"), record(2, "merge", "5")]
    assert to_undo(merged, None).number == to_undo(merged, "5").number == 2
    assert to_rewind_to(merged, "5").number == 2
    with pytest.raises(NothingToUndo):
        to_undo([*merged, record(3, "undo", "5", undoes=2)], None)
    assert to_undo([record(1, turn="5"), replace(record(2, "merge", "5"), state="begun")], "5").number == 1


def test_a_rewind_can_be_taken_back() -> None:
    assert to_undo([*TURNS, record(4, "rewind", "5")], None).number == 4


def test_a_turn_without_changes_cannot_be_taken_back() -> None:
    idle = replace(record(4, turn="9"), changes=FolderChanges(folder="/repo", before="a", after="a"))
    assert to_undo([*TURNS, idle], None).turn_id == "7"
    with pytest.raises(NothingToUndo, match="Turn 9 changed no files"):
        to_undo([*TURNS, idle], "9")
    assert to_rewind_to([*TURNS, idle], "9").number == 4


def test_a_turn_that_was_not_looked_at_cannot_be_gone_back_to() -> None:
    with pytest.raises(NothingToUndo, match="after turn 2"):
        to_rewind_to(TURNS, "2")


def test_the_inverse_of_the_inverse_is_the_change_itself() -> None:
    renamed = FileChange(
        path="new", kind="renamed", renamed_from="old", raw_renamed_from=b"old\xff", old=FileState(blob="1"), added=1
    )
    files = (EDIT, FileChange(path="b", kind="added", new=FileState(blob="3")), renamed)
    turned = inverse(files)
    assert [file.kind for file in turned] == ["changed", "deleted", "renamed"]
    assert (turned[2].path, turned[2].renamed_from, turned[2].raw_path) == ("old", "new", b"old\xff")
    assert (turned[0].added, turned[0].removed) == (1, 3)
    assert inverse(turned) == files
