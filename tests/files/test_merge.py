"""What two sides have changed comes together, or is a conflict with all versions kept."""

from pathlib import Path
from random import Random

from tests.files.stage import repository, workspace, write

from bullpen.file_changes import FileState
from bullpen.files.merge import Merged
from bullpen.files.workspace import Workspace

LINES = b"".join(b"line %d\n" % number for number in range(20))
BASE = {"text": LINES, "other": b"o\n", "dir/file": b"f\n", "binary": b"\0\1", "file": b"x\n"}
Changes = dict[str, bytes | None]


def change(root: Path, files: Changes) -> None:
    for name, data in files.items():
        if data is None:
            (root / name).unlink()
        else:
            write(root, {name: data})


def merged(place: Workspace, ours: Changes, theirs: Changes) -> Merged:
    """Merge what two sides make of the same files; ours is in the folder afterwards."""
    base = place.snapshot().id
    change(place.root, theirs)
    of_theirs = place.snapshot().id
    place.apply(place.compare(base, of_theirs).files, back=True)
    change(place.root, ours)
    return place.merge(base, place.snapshot().id, of_theirs)


def stage(tmp_path: Path) -> Workspace:
    return workspace(repository(tmp_path / "root", BASE))


def contents(place: Workspace, state: FileState | None) -> bytes | None:
    return None if state is None else place.contents(state.blob)


def test_different_files_and_different_lines_come_together(tmp_path: Path) -> None:
    place = stage(tmp_path)
    result = merged(
        place,
        {"text": LINES.replace(b"line 2\n", b"OURS\n"), "mine": b"m\n"},
        {"text": LINES.replace(b"line 17\n", b"THEIRS\n"), "theirs": b"t\n", "other": None, "binary": b"\0\2"},
    )

    place.apply(result.changes, back=False)

    assert result.conflicts == ()
    both = LINES.replace(b"line 2\n", b"OURS\n").replace(b"line 17\n", b"THEIRS\n")
    assert (place.root / "text").read_bytes() == both
    assert (place.root / "theirs").read_bytes() == b"t\n"
    assert (place.root / "mine").exists()
    assert not (place.root / "other").exists()
    assert (place.root / "binary").read_bytes() == b"\0\2"
    place.apply(result.changes, back=True)
    assert (place.root / "other").exists()


def test_the_same_line_is_a_conflict_with_all_versions(tmp_path: Path) -> None:
    place = stage(tmp_path)
    mine, theirs = LINES.replace(b"line 5", b"ours 5"), LINES.replace(b"line 5", b"theirs 5")
    result = merged(place, {"text": mine}, {"text": theirs, "other": b"changed\n"})

    (conflict,) = result.conflicts

    assert [change.path for change in result.changes] == ["other"]
    assert contents(place, conflict.base) == LINES
    assert contents(place, conflict.ours) == mine
    assert contents(place, conflict.theirs) == theirs
    marked = contents(place, conflict.marked)
    assert marked is not None
    assert b"<<<<<<< ours\nours 5\n=======\ntheirs 5\n>>>>>>> theirs\n" in marked


def test_what_cannot_both_be_is_a_conflict(tmp_path: Path) -> None:
    place = stage(tmp_path)
    result = merged(
        place,
        {"text": None, "other": b"mine\n", "binary": b"\0ours", "both": b"a\n", "file": None, "file/in it": b"y\n"},
        {"text": b"changed\n", "other": None, "binary": b"\0theirs", "both": b"b\n", "file": b"z\n", "dir2/x": b"x\n"},
    )

    assert sorted(conflict.path for conflict in result.conflicts) == ["binary", "both", "file", "other", "text"]
    assert [change.path for change in result.changes] == ["dir2/x"]
    place.apply(result.changes, back=False)


def test_a_file_and_a_folder_of_one_name_are_a_conflict(tmp_path: Path) -> None:
    place = stage(tmp_path)

    result = merged(place, {"name": b"a file\n"}, {"name/inside": b"in a folder\n"})

    assert [conflict.path for conflict in result.conflicts] == ["name/inside"]
    assert result.changes == ()


def test_the_same_change_on_both_sides_is_none(tmp_path: Path) -> None:
    place = stage(tmp_path)

    assert merged(place, {"text": b"same\n", "other": None}, {"text": b"same\n", "other": None}) == Merged()


def test_modes_are_merged_as_lines_are(tmp_path: Path) -> None:
    place = stage(tmp_path)
    base = place.snapshot().id
    (place.root / "text").chmod(0o755)
    theirs = place.snapshot().id
    (place.root / "text").chmod(0o644)
    write(place.root, {"text": b"ours\n"})

    result = place.merge(base, place.snapshot().id, theirs)
    place.apply(result.changes, back=False)

    assert result.conflicts == ()
    assert (place.root / "text").read_bytes() == b"ours\n"
    assert (place.root / "text").stat().st_mode & 0o100


def test_what_one_side_made_executable_the_other_may_change(tmp_path: Path) -> None:
    place = stage(tmp_path)
    base = place.snapshot().id
    write(place.root, {"text": b"theirs\n"})
    theirs = place.snapshot().id
    write(place.root, {"text": LINES})
    (place.root / "text").chmod(0o755)

    result = place.merge(base, place.snapshot().id, theirs)
    place.apply(result.changes, back=False)

    assert result.conflicts == ()
    assert (place.root / "text").read_bytes() == b"theirs\n"
    assert (place.root / "text").stat().st_mode & 0o100


def test_no_write_is_lost(tmp_path: Path) -> None:
    random = Random(7)
    place = stage(tmp_path)
    names = [*BASE, "new", "dir/new"]
    for _ in range(8):
        sides: list[Changes] = []
        for side in (b"ours", b"theirs"):
            numbers = random.sample(range(20), 3)
            lines = [b"%b %d\n" % (side, n) if n in numbers else b"line %d\n" % n for n in range(20)]
            sides.append({random.choice(names): b"".join(lines) for _ in range(2)})
        base = place.snapshot().id
        result = merged(place, *sides)
        after_ours = place.snapshot().id
        place.apply(result.changes, back=False)
        conflicts = {conflict.path for conflict in result.conflicts}
        for name, data in sides[1].items():
            if name not in conflicts:
                now = (place.root / name).read_bytes()
                assert all(line in now for line in (data or b"").splitlines() if line.startswith(b"theirs"))
        for name, data in sides[0].items():
            now = (place.root / name).read_bytes() if data else b""
            assert all(line in now for line in (data or b"").splitlines() if line.startswith(b"ours"))
        place.apply(result.changes, back=True)
        place.apply(place.compare(base, after_ours).files, back=True)
