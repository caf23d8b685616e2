"""Files are put back exactly, or nothing is touched."""

import os
import shutil
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from tests import forked
from tests.files.random_turns import files_in, others_in
from tests.files.stage import FILES, repository, told, turn, workspace, write

from bullpen.errors import FilesDiffer, FilesFailed, FilesNotKept
from bullpen.file_changes import FileChange, FileState, FolderChanges
from bullpen.files.workspace import Workspace

KILLED = """
import sys
from pathlib import Path
import msgspec
from bullpen.file_changes import FolderChanges
from bullpen.files import apply, present
from tests.files.stage import workspace
from proofs.torture.killing_itself import dying, wrap
root, times, step = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
changes = msgspec.json.decode(sys.stdin.buffer.read(), type=FolderChanges)
wrap(apply.os, step, dying(times, lambda: None), before=times % 2 == 0)
workspace(root).apply(changes.files, back=True)
"""


def test_what_changed_since_is_named_and_nothing_is_touched(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"edited.txt": b"x\n", "new.txt": b"new\n", "gone.txt": None, "kept.txt": b"k\n"})
    write(place.root, {"edited.txt": b"by somebody\n", "gone.txt": b"made again\n"})
    (place.root / "kept.txt").unlink()
    before = files_in(place.root)

    with pytest.raises(FilesDiffer) as caught:
        place.apply(changes.files, back=True)

    assert sorted(caught.value.paths) == ["edited.txt", "gone.txt", "kept.txt"]
    assert "'edited.txt'" in str(caught.value)
    assert files_in(place.root) == before
    assert sorted(place.differs(changes.files, "new")) == ["edited.txt", "gone.txt", "kept.txt"]


def test_what_already_is_as_wanted_is_fine(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"edited.txt": b"x\n", "new.txt": b"new\n"})
    write(place.root, {"edited.txt": FILES["edited.txt"]})

    place.apply(changes.files, back=True)

    assert files_in(place.root) == {name: ("100644", data) for name, data in FILES.items()}


def test_other_files_in_a_folder_keep_it(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"made/by/agent": b"x", "also/made": b"x"})
    write(place.root, {"also/of a person": b"y"})

    place.apply(changes.files, back=True)

    assert not (place.root / "made").exists()
    assert (place.root / "also" / "of a person").exists()


def test_a_folder_of_somebody_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    before = place.snapshot()
    (place.root / "gone.txt").unlink()
    write(place.root, {"gone.txt/inside": b"x"})
    changes = place.compare(before.id, place.snapshot().id)
    write(place.root, {"gone.txt/deeper/of a person": b"y"})

    with pytest.raises(FilesDiffer, match=r"gone\.txt"):
        place.apply(changes.files, back=True)

    (place.root / "gone.txt" / "deeper" / "of a person").unlink()
    (place.root / "gone.txt" / "empty" / "folders").mkdir(parents=True)
    place.apply(changes.files, back=True)
    assert (place.root / "gone.txt").read_bytes() == FILES["gone.txt"]


def test_links_are_never_followed(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"folder/deep.txt": b"x"})
    write(tmp_path / "outside", {"deep.txt": b"x"})
    (place.root / "folder" / "deep.txt").unlink()
    (place.root / "folder").rmdir()
    (place.root / "folder").symlink_to(tmp_path / "outside")

    with pytest.raises(FilesDiffer):
        place.apply(changes.files, back=True)

    assert (tmp_path / "outside" / "deep.txt").read_bytes() == b"x"


def test_nothing_behind_a_link_is_removed(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"made/new.txt": b"x"})
    write(tmp_path / "outside", {"new.txt": b"x"})
    (place.root / "made" / "new.txt").unlink()
    (place.root / "made").rmdir()
    (place.root / "made").symlink_to(tmp_path / "outside")

    place.apply(changes.files, back=True)

    assert (tmp_path / "outside" / "new.txt").read_bytes() == b"x", "it is another file with the same contents"
    assert (place.root / "made").is_symlink()


def test_a_file_of_which_git_gives_only_half_is_not_put_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "root")
    changes = turn(workspace(root), {"kept.txt": b"x"})
    programs = tmp_path / "programs"
    programs.mkdir()
    half = programs / "git"
    script = 'case "$*" in *--batch=*) "$GIT" "$@" | head -c 10;; *) exec "$GIT" "$@";; esac'
    half.write_text(f"#!/bin/sh\nGIT={shutil.which('git')}\n{script}\n", encoding="utf-8")
    half.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    with pytest.raises(FilesFailed, match="its output ended too early"):
        workspace(root).apply(changes.files, back=True)

    assert (root / "kept.txt").read_bytes() == b"x"


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/outside", ".git/hooks/x", "a/.GIT/x", "a/../../outside", "", "a//b", "."]
)
def test_nothing_outside_is_written(tmp_path: Path, path: str) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"new": b"x"})
    (new,) = changes.files
    others = others_in(place.root)

    with pytest.raises(FilesFailed):
        place.apply([msgspec.structs.replace(new, path=path)], back=False)

    assert others_in(place.root) == others
    assert not (tmp_path / "outside").exists()


def test_permissions_stay_but_for_the_right_to_run(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    file = place.root / "edited.txt"
    file.chmod(0o640)
    before = place.snapshot()
    file.write_bytes(b"x")
    file.chmod(0o750)
    changes = place.compare(before.id, place.snapshot().id)

    place.apply(changes.files, back=True)

    assert file.stat().st_mode & 0o777 == 0o640
    place.apply(changes.files, back=False)
    assert file.stat().st_mode & 0o777 == 0o750


def test_what_was_removed_comes_back_with_usual_permissions(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    (place.root / "edited.txt").chmod(0o755)
    changes = turn(place, {"edited.txt": None, "kept.txt": None})
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode & 0o777

    place.apply(changes.files, back=True)

    assert (place.root / "kept.txt").stat().st_mode & 0o777 == usual
    assert (place.root / "edited.txt").stat().st_mode & 0o777 == usual | (usual & 0o444) >> 2


def test_a_link_gives_its_permissions_to_no_file(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    write(tmp_path, {"outside": b"x"})
    (tmp_path / "outside").chmod(0o600)
    before = place.snapshot()
    (place.root / "kept.txt").unlink()
    (place.root / "kept.txt").symlink_to(tmp_path / "outside")
    changes = place.compare(before.id, place.snapshot().id)
    (tmp_path / "usual").touch()

    place.apply(changes.files, back=True)

    assert (place.root / "kept.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_contents_that_are_lost_are_said_before_anything_is_touched(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"edited.txt": b"x\n", "new": b"x"})
    lost = FileChange(path="lost", kind="deleted", old=FileState(blob="12" * 20))

    with pytest.raises(FilesNotKept, match="lost"):
        place.apply([*changes.files, lost], back=True)

    assert (place.root / "new").exists()
    with pytest.raises(FilesNotKept):
        place.contents("12" * 20)


@pytest.mark.parametrize("step", ["fsync", "rename", "unlink", "open"])
@pytest.mark.parametrize("times", [1, 2, 4, 8])
def test_killed_in_the_middle_it_is_completed_by_doing_it_again(tmp_path: Path, step: str, times: int) -> None:
    place = workspace(repository(tmp_path / "root"))
    before = files_in(place.root)
    changes = many_changes(place)
    after = files_in(place.root)

    command = [sys.executable, "-c", KILLED, str(place.root), str(times), step]
    done = forked.run(command, input=msgspec.json.encode(changes), cwd=Path(__file__).parents[2], check=False)

    assert done.returncode == -signal.SIGKILL or (times > 4 and done.returncode == 0)
    found = files_in(place.root)
    states = (before, after)
    assert all(any(found.get(path) == state.get(path) for state in states) for path in before.keys() | after.keys())
    place.apply(changes.files, back=True)
    assert files_in(place.root) == before
    place.apply(changes.files, back=False)
    assert files_in(place.root) == after


def many_changes(place: Workspace) -> FolderChanges:
    first = place.snapshot()
    write(place.root, {"edited.txt": b"x" * 100_000, "new/one": b"1", "new/two": b"2", "\u4e2d": b"3"})
    (place.root / "gone.txt").unlink()
    write(place.root, {"gone.txt/inside": b"x"})
    (place.root / "folder" / "deep.txt").unlink()
    (place.root / "folder").rmdir()
    (place.root / "folder").symlink_to("/tmp")
    (place.root / "kept.txt").rename(place.root / "moved.txt")
    changes = place.compare(first.id, place.snapshot().id)
    assert len(told(changes)) == 9
    return changes
