"""What was changed, in words and in lists."""

import pytest
from msgspec.structs import replace

from bullpen.file_changes import ChangeKind, ChangeRecord, FileChange, FileKind, FileState, FolderChanges
from bullpen.view.changes import Changes, change_summary, changes_of, record_words


def state(blob: str) -> FileState | None:
    return FileState(blob=blob) if blob else None


def file(
    path: str, old: str, new: str, added: int = 1, removed: int = 1, *, kind: FileKind = "changed", source: str = ""
) -> FileChange:
    return FileChange(
        path=path, kind=kind, old=state(old), new=state(new), added=added, removed=removed, renamed_from=source
    )


def record(number: int, *files: FileChange, kind: ChangeKind = "turn", member: str = "max") -> ChangeRecord:
    person = "ann" if kind in ("undo", "redo", "rewind") else ""
    return ChangeRecord(
        number=number,
        kind=kind,
        turn_id="" if kind == "people" else "5",
        member="" if kind == "people" else member,
        person=person,
        at=1,
        changes=FolderChanges(folder="/x", files=files),
    )


TWO = (file("a", "1", "2", 20, 7), file("b", "", "3", 4, 0, kind="added"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("turn", "max changed 2 files in turn 5 (+24 −7)."),
        ("people", "Somebody changed 2 files between turns (+24 −7)."),
        ("undo", "ann took back turn 5: 2 files (+24 −7)."),
        ("redo", "ann brought back turn 5: 2 files (+24 −7)."),
        ("rewind", "ann put the files back to how they were after turn 5: 2 files (+24 −7)."),
        ("merge", "max, turn 5, merged: 2 files (+24 −7)."),
    ],
)
def test_every_record_is_a_sentence(kind: ChangeKind, words: str) -> None:
    assert record_words(record(1, *TWO, kind=kind)) == words


@pytest.mark.parametrize(
    ("about", "what"), [("rewind", "the rewind to turn 5"), ("take", "/take 5"), ("turn", "turn 5")]
)
def test_what_was_taken_back_is_named_for_what_it_is(about: ChangeKind, what: str) -> None:
    undone, redone = (replace(record(1, *TWO, kind=kind), about=about) for kind in ("undo", "redo"))
    assert record_words(undone) == f"ann took back {what}: 2 files (+24 −7)."
    assert record_words(redone) == f"ann brought back {what}: 2 files (+24 −7)."
    assert [group.title for group in changes_of([undone, redone]).turns] == [
        f"ann took back {what}",
        f"ann brought back {what}",
    ]


def test_what_is_not_known_is_said() -> None:
    unknown = FolderChanges(folder="/x", note="There is no git here.")
    begun = ChangeRecord(kind="undo", turn_id="5", person="ann", at=1, state="begun", changes=unknown)

    assert change_summary(unknown) == "what changed is not known"
    assert change_summary(FolderChanges(folder="/x")) == ""
    assert change_summary(FolderChanges(folder="/x", files=TWO[:1])) == "1 file, +20 −7"
    assert record_words(begun) == (
        "ann took back turn 5: which files is not known (not finished yet). There is no git here."
    )
    assert changes_of([begun]).together.notes == ("There is no git here.",)


def listed(changes: Changes) -> dict[str, list[tuple[str, str]]]:
    return {
        group.key: [(one.title, one.about) for one in group.files] for group in (*changes.members, changes.together)
    }


def test_files_are_summed_up_per_member_and_all_together() -> None:
    records = [
        record(1, file("a", "1", "2", 3, 1), file("new", "", "9", 5, 0, kind="added")),
        record(2, file("a", "2", "4", 1, 1), kind="people"),
        record(3, file("a", "4", "5", 2, 0), file("new", "9", "8", 1, 1), member="sarah"),
    ]

    changes = changes_of(records)

    assert [(group.key, group.title, group.summary) for group in changes.turns] == [
        ("1", "turn 5 · max", "2 files, +8 −1"),
        ("2", "Somebody, between turns", "1 file, +1 −1"),
        ("3", "turn 5 · sarah", "2 files, +3 −1"),
    ]
    assert listed(changes) == {
        "max": [("a", "+3 −1"), ("new", "new, +5")],
        "Somebody": [("a", "+1 −1")],
        "sarah": [("a", "+2"), ("new", "+1 −1")],
        "all": [("a", "+6 −2"), ("new", "new, +6 −1")],
    }
    assert changes.together.files[0].parts == ("1", "2", "3")


def test_what_is_again_as_it_was_is_not_in_all_together() -> None:
    records = [
        record(1, file("a", "1", "2"), file("new", "", "9", kind="added"), file("mine", "", "7", kind="added")),
        record(2, file("a", "2", "1"), file("new", "9", "", kind="deleted"), kind="undo"),
    ]

    changes = changes_of(records)

    assert [one.path for one in changes.together.files] == ["mine"]
    assert [one.path for one in changes.members[1].files] == ["a", "new"]


def test_a_file_is_followed_through_its_names() -> None:
    moved = [
        record(1, file("b", "1", "1", 0, 0, kind="renamed", source="a")),
        record(2, file("c", "1", "2", kind="renamed", source="b"), file("b", "", "4", kind="added")),
    ]
    swapped = record(
        3, file("x", "1", "1", kind="renamed", source="y"), file("y", "2", "2", kind="renamed", source="x")
    )

    assert [(one.title, one.kind) for one in changes_of(moved).together.files] == [("b", "added"), ("a → c", "renamed")]
    assert [one.title for one in changes_of([swapped]).together.files] == ["y → x", "x → y"]


def test_what_was_brought_into_the_shared_folder_is_counted_once() -> None:
    own = record(1, file("a", "1", "2", 3, 1))
    own = replace(own, changes=replace(own.changes, folder="/own"))

    changes = changes_of([own, record(2, file("a", "1", "2", 3, 1), kind="merge")])

    assert listed(changes) == {"max": [("a", "+3 −1")], "all": [("a", "+3 −1")]}
    assert changes.together.files[0].folder == "/x"


def test_files_of_which_only_the_size_is_known_stay_in_the_list() -> None:
    unknown = FileChange(path="a", kind="changed")

    changes = changes_of([record(1, unknown), record(2, unknown)])

    assert [(one.path, one.about) for one in changes.together.files] == [("a", "changed")]
