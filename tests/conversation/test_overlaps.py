"""Which turn has changed a file, by what the turns were doing between two looks at their folder."""

import itertools
from pathlib import Path

from bullpen.conversation.collisions import MOST_OF_A_FILE, Overlap, is_lost
from bullpen.file_changes import FileChange, FileState
from bullpen.turn_events import ToolFinished, ToolStarted

ROOT = "/project"


def changed(path: str, old: str, new: str) -> FileChange:
    return FileChange(path=path, kind="changed", old=FileState(blob=old), new=FileState(blob=new))


def overlap_of(*turns: str) -> Overlap:
    overlap = Overlap(ROOT)
    for turn in turns:
        overlap.begins(turn, ROOT, tells_tools=True)
    return overlap


def starts(overlap: Overlap, turn: str, name: str, tool_id: str = "t", **given: object) -> None:
    overlap.on_event(turn, ToolStarted(id=tool_id, name=name, input=given))


def ends(overlap: Overlap, turn: str, tool_id: str = "t", *, failed: bool = False, files: tuple[str, ...] = ()) -> bool:
    return overlap.on_event(turn, ToolFinished(id=tool_id, failed=failed, changed_files=files))


def found(overlap: Overlap, *files: FileChange) -> list[tuple[str, str, bool, bool]]:
    overlap.begin_look()
    seen = overlap.seen(files)
    overlap.told([one.file for one in seen])
    return [(one.first, one.second, one.is_sure, one.is_first_seen) for one in seen]


def edits(overlap: Overlap, turn: str, path: str) -> None:
    starts(overlap, turn, "Edit", file_path=path)
    assert ends(overlap, turn)


def test_an_edit_is_of_the_turn_whose_tool_names_the_file() -> None:
    overlap = overlap_of("1", "2")
    starts(overlap, "2", "Bash", command="make")
    edits(overlap, "1", "/project/a.py")
    assert found(overlap, changed("a.py", "0", "1")) == []
    edits(overlap, "1", "a.py")
    assert found(overlap, changed("a.py", "1", "2")) == [], "the shell of the other one runs, but an edit names it"
    assert ends(overlap, "2")
    assert found(overlap, changed("a.py", "2", "3")) == [("1", "2", True, True)]


def test_two_edits_between_two_looks_have_surely_collided() -> None:
    overlap = overlap_of("9", "10")
    edits(overlap, "9", "a.py")
    edits(overlap, "10", "a.py")
    assert found(overlap, changed("a.py", "0", "2")) == [("9", "10", True, False)]


def test_an_edit_that_failed_or_only_read_is_not_suspected() -> None:
    overlap = overlap_of("1", "2")
    edits(overlap, "1", "a.py")
    assert found(overlap, changed("a.py", "0", "1")) == []
    starts(overlap, "2", "Edit", file_path="a.py")
    assert ends(overlap, "2", failed=True)
    starts(overlap, "2", "Read", file_path="a.py")
    assert not ends(overlap, "2")
    starts(overlap, "1", "Bash")
    assert found(overlap, changed("a.py", "1", "2")) == []


def test_an_edit_that_was_seen_while_it_ran_is_not_counted_again() -> None:
    overlap = overlap_of("1", "2")
    starts(overlap, "1", "Write", file_path="a.py")
    assert found(overlap, changed("a.py", "0", "1")) == []
    assert ends(overlap, "1")
    edits(overlap, "2", "a.py")
    assert found(overlap, changed("a.py", "1", "2")) == [("1", "2", True, True)]


def test_a_tool_that_is_told_after_its_work_was_seen_counts() -> None:
    overlap = overlap_of("1", "2")
    edits(overlap, "1", "a.py")
    assert found(overlap, changed("a.py", "0", "1")) == []
    assert found(overlap, changed("a.py", "1", "2"), changed("b.py", "0", "1")) == []
    starts(overlap, "2", "Bash")
    edits(overlap, "2", "a.py")
    assert found(overlap) == [("1", "2", True, True)]
    edits(overlap, "1", "b.py")
    assert found(overlap, changed("b.py", "1", "2")) == [], "a person had changed it, some looks ago"


def test_files_that_codex_names_only_when_it_is_done() -> None:
    overlap = overlap_of("1", "2")
    assert ends(overlap, "1", files=("/project/a.py", "/elsewhere/b.py"))
    assert found(overlap, changed("a.py", "0", "1"), changed("b.py", "0", "1")) == []
    starts(overlap, "2", "file_change", changes=[{"path": "a.py"}, {"path": "b.py"}])
    assert ends(overlap, "2")
    assert found(overlap, changed("a.py", "1", "2"), changed("b.py", "1", "2")) == [("1", "2", True, True)]


def test_a_file_that_two_change_all_the_time_is_told_a_few_times() -> None:
    overlap = overlap_of("1", "2")
    told = 0
    for number, turn in zip(range(100), itertools.cycle(["1", "2"]), strict=False):
        edits(overlap, turn, "log.txt")
        told += len(found(overlap, changed("log.txt", str(number), str(number + 1))))
    assert told == MOST_OF_A_FILE


def test_of_programs_that_tell_nothing_it_is_not_known_who_it_was() -> None:
    overlap = Overlap(ROOT)
    for turn in ("1", "2"):
        overlap.begins(turn, ROOT, tells_tools=False)
    assert found(overlap, changed("a", "0", "1")) == []
    assert found(overlap, changed("a", "1", "2")) == [("1", "2", False, True)]
    overlap.ends("1")
    assert found(overlap, changed("b", "0", "1")) == []
    assert found(overlap, changed("b", "1", "2")) == [], "only one of them is left"


def test_a_path_through_a_link_is_the_same_file(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "real"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)
    overlap = Overlap(str(root))
    for turn in ("1", "2"):
        overlap.begins(turn, str(root / "folder"), tells_tools=True)
    edits(overlap, "1", str(tmp_path / "link" / "folder" / "a.py"))
    assert found(overlap, changed("folder/a.py", "0", "1")) == []
    edits(overlap, "2", "a.py")
    assert found(overlap, changed("folder/a.py", "1", "2")) == [("1", "2", True, True)]


def test_names_of_files_that_cannot_be_are_ignored() -> None:
    overlap = overlap_of("1", "2")
    for path in ("a\0b", "../../etc/passwd", "", 7, None):
        starts(overlap, "1", "Edit", file_path=path)
        ends(overlap, "1")
    assert found(overlap, changed("a.py", "0", "1")) == []


def test_what_is_lost() -> None:
    assert not is_lost(b"a\n", b"a\nann\n", b"a\nann\nbob\n")
    assert is_lost(b"a\n", b"a\nann\n", b"a\nbob\n")
    assert not is_lost(b"a\nb\n", b"a\n", b"a\nbob\n"), "a line that was removed is not missed"
    assert is_lost(b"", None, b"bob\n")
    assert is_lost(b"", b"ann\n", None)
