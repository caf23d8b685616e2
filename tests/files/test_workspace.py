"""What a workspace is, and what is seen in it."""

import os
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tests.files.random_turns import git
from tests.files.stage import FILES, kept_bytes, repository, told, turn, workspace, write

from bullpen.errors import FilesNotKept
from bullpen.file_changes import MOST_PATCH_BYTES
from bullpen.files import snapshot
from bullpen.files.workspace import FolderSnapshots


def test_a_turn_is_told_with_lines_and_kinds(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    before = place.snapshot()
    write(place.root, {"edited.txt": b"a\nB\nc\nd\n", "new.txt": b"new\n", "picture.png": b"\x89PNG\0\0"})
    (place.root / "gone.txt").unlink()
    (place.root / "kept.txt").rename(place.root / "moved.txt")
    (place.root / "folder" / "deep.txt").chmod(0o755)

    changes = place.compare(before.id, place.snapshot().id)

    assert told(changes) == {
        "edited.txt": "changed",
        "folder/deep.txt": "mode",
        "gone.txt": "deleted",
        "moved.txt": "renamed",
        "new.txt": "added",
        "picture.png": "added",
    }
    by_path = {file.path: file for file in changes.files}
    assert (by_path["edited.txt"].added, by_path["edited.txt"].removed) == (2, 1)
    assert by_path["moved.txt"].renamed_from == "kept.txt"
    assert by_path["picture.png"].is_binary
    assert changes.folder == str(place.root)
    assert (changes.added, changes.removed) == (3, 2)
    assert "+B\n" in changes.patch
    new = by_path["new.txt"].new
    assert new is not None
    assert place.contents(new.blob) == b"new\n"


def test_a_folder_belongs_to_its_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    snapshots = FolderSnapshots(tmp_path / "home")

    assert snapshots.workspace(root / "folder") is snapshots.workspace(root)
    assert snapshots.workspace(root / "folder").root == root
    assert snapshots.workspace(root / ".git" / "hooks").root == root / ".git" / "hooks"
    assert snapshots.workspace(tmp_path).root == tmp_path


def test_a_folder_that_its_repository_ignores_stands_for_itself(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", {".gitignore": b"/build/\n*.log\n!kept.log\n", "src/a": b"a"})
    write(root, {"build/deep/er/x": b"x", "src/x.log": b"x", "only logs/x.log": b"x"})
    (root / "empty").mkdir()
    snapshots = FolderSnapshots(tmp_path / "home")

    assert snapshots.workspace(root / "build").root == root / "build"
    assert snapshots.workspace(root / "build" / "deep" / "er").root == root / "build" / "deep" / "er"
    assert snapshots.workspace(root / "src").root == root
    assert snapshots.workspace(root / "empty").root == root
    assert snapshots.workspace(root / "only logs").root == root
    place = snapshots.workspace(root / "build")
    assert told(turn(place, {"deep/er/x": b"y", "a.log": b"x"})) == {"a.log": "added", "deep/er/x": "changed"}


def test_what_is_kept_is_private(tmp_path: Path) -> None:
    workspace(repository(tmp_path / "root")).snapshot()

    assert (tmp_path / "home").stat().st_mode & 0o077 == 0


def test_the_same_after_it_was_opened_again(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    before = workspace(root).snapshot()
    write(root, {"edited.txt": b"other\n"})

    changes = workspace(root).compare(before.id, workspace(root).snapshot().id)

    assert told(changes) == {"edited.txt": "changed"}


def test_an_edit_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    before = place.snapshot()
    file = place.root / "edited.txt"
    status = file.stat()
    file.write_bytes(b"A\nB\nC\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert told(place.compare(before.id, place.snapshot().id)) == {"edited.txt": "changed"}


def test_what_is_ignored_is_left_alone_unless_it_is_tracked(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", {".gitignore": b"*.log\n", "a.txt": b"a\n"})
    write(root, {"tracked.log": b"1\n", "left.log": b"1\n", "excluded": b"1\n"})
    git(root, "add", "-f", "tracked.log")
    write(root, {".git/info/exclude": b"excluded\n"})
    place = workspace(root)
    first = place.snapshot()
    write(root, {"tracked.log": b"2\n", "left.log": b"2\n", "excluded": b"2\n", "later.log": b"1\n"})
    git(root, "add", "-f", "later.log")

    assert told(place.compare(first.id, place.snapshot().id)) == {"later.log": "added", "tracked.log": "changed"}


def test_excludes_of_the_person_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path, {"settings": f"[core]\n\texcludesFile = {tmp_path}/everywhere\n".encode(), "everywhere": b"*.tmp\n"}
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, {".gitconfig": (tmp_path / "settings").read_bytes()})
    place = workspace(repository(tmp_path / "root"))

    assert told(turn(place, {"a.tmp": b"x", "a.txt": b"x"})) == {"a.txt": "added"}


def test_a_folder_without_git_leaves_out_what_is_made(tmp_path: Path) -> None:
    write(tmp_path / "root", FILES)
    place = workspace(tmp_path / "root")

    changes = turn(place, {"edited.txt": b"x\n", "node_modules/a/index.js": b"x", ".venv/bin/python": b"x"})

    assert told(changes) == {"edited.txt": "changed"}
    place.apply(changes.files, back=True)
    assert (place.root / "edited.txt").read_bytes() == FILES["edited.txt"]
    assert not (place.root / ".git").exists()


def test_a_folder_that_becomes_a_repository_stays_the_same(tmp_path: Path) -> None:
    write(tmp_path / "root", FILES)
    before = workspace(tmp_path / "root").snapshot()
    git(tmp_path / "root", "init", "-q")

    assert workspace(tmp_path / "root").snapshot() == before


def test_many_files_without_git_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_NEW_FILES", 3)
    write(tmp_path / "root", FILES)
    place = workspace(tmp_path / "root")

    changes = turn(place, {"edited.txt": b"a\nb\nd\n", "gone.txt": None, "new": b"x"})

    assert told(changes) == {"edited.txt": "changed", "gone.txt": "deleted", "new": "added"}
    assert changes.note.startswith("Only names and sizes are known: ")
    assert "4 files" in place.snapshot().note
    with pytest.raises(FilesNotKept, match="only names and sizes"):
        place.apply(changes.files, back=True)


def test_a_tree_and_a_listing_can_be_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = workspace(repository(tmp_path / "root"))
    before = place.snapshot()
    monkeypatch.setattr(snapshot, "MOST_NEW_BYTES", 10)
    write(place.root, {"data": b"x" * 100, "edited.txt": b"longer than it was\n"})

    changes = place.compare(before.id, place.snapshot().id)

    assert told(changes) == {"data": "added", "edited.txt": "changed"}
    assert changes.note


def test_a_file_that_is_too_large_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_FILE_BYTES", 1000)
    place = workspace(repository(tmp_path / "root"))
    write(place.root, {"large": b"x" * 2000, "edited.txt": b"y" * 2000, "new": b"1"})

    taken = place.snapshot()

    assert "large" in taken.note
    assert "edited.txt" in taken.note
    assert kept_bytes(tmp_path / "home") < 20_000
    assert told(turn(place, {"large": b"y" * 3000, "new": b"2"})) == {"new": "changed"}


def test_a_large_patch_is_cut_by_whole_files(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    lines = b"".join(b"line %d\n" % number for number in range(MOST_PATCH_BYTES // 8))

    changes = turn(place, {"a": lines, "b": b"small\n", "edited.txt": lines[: MOST_PATCH_BYTES // 2], "z": b"last\n"})

    assert changes.patch_is_cut
    assert len(changes.patch.encode()) <= MOST_PATCH_BYTES
    assert "diff --git a/a " not in changes.patch
    assert "+small\n" in changes.patch
    assert changes.patch.endswith("+last\n")
    assert {file.path: file.added for file in changes.files}["a"] == lines.count(b"\n")
    place.apply(changes.files, back=True)
    assert not (place.root / "a").exists()


def test_nothing_is_kept_twice(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", {"large": os.urandom(300_000), "small": b"x\n"})
    place = workspace(root)
    place.snapshot()

    assert kept_bytes(tmp_path / "home") < 10_000


def test_what_a_turn_replaced_outlives_their_objects(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    place = workspace(root)
    changes = turn(place, {"edited.txt": b"x\n", "folder/deep.txt": None})
    rmtree(root / ".git" / "objects")

    place.apply(changes.files, back=True)

    assert (root / "edited.txt").read_bytes() == FILES["edited.txt"]
    assert (root / "folder" / "deep.txt").read_bytes() == FILES["folder/deep.txt"]
    again = workspace(root).compare(changes.before, changes.after)
    assert again.files == changes.files
    assert again.patch == changes.patch


def test_the_index_keeps_its_time_where_git_writes_it_without_a_look_at_the_files(tmp_path: Path) -> None:
    """A file that is as young as the index is read again; if the index became younger, a change would be missed."""
    root = repository(tmp_path / "root")
    place = workspace(root)
    place.snapshot()
    (index,) = (tmp_path / "home").glob("*/roots/*/index")
    os.utime(index, ns=(10**18, 10**18))
    before = index.stat()
    (root / "gone.txt").unlink()

    place.snapshot()

    assert index.stat().st_size < before.st_size
    assert index.stat().st_mtime_ns == before.st_mtime_ns


def test_worktrees_of_one_repository_share_what_is_kept(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    git(root, "worktree", "add", "-q", str(tmp_path / "other"))
    snapshots = FolderSnapshots(tmp_path / "home")
    one, other = snapshots.workspace(root), snapshots.workspace(tmp_path / "other")
    base = one.snapshot()
    write(other.root, {"edited.txt": b"a\nb\nfrom the other\n"})

    changes = one.compare(base.id, other.snapshot().id)
    one.apply(changes.files, back=False)

    assert one.root != other.root
    assert (root / "edited.txt").read_bytes() == b"a\nb\nfrom the other\n"
    other.remove()
    assert told(one.compare(base.id, one.snapshot().id)) == {"edited.txt": "changed"}
    one.remove()
    assert [file.name for file in (tmp_path / "home").iterdir()] == ["in-use"]


@pytest.mark.parametrize("damage", ["HEAD", "index", "objects", "config"])
def test_a_corrupt_repository_does_not_matter(tmp_path: Path, damage: str) -> None:
    root = repository(tmp_path / "root")
    target = root / ".git" / damage
    if target.is_dir():
        rmtree(target)
    else:
        target.write_bytes(b"\0garbage" * 100)
    place = workspace(root)

    changes = turn(place, {"edited.txt": b"x\n"})

    assert told(changes) == {"edited.txt": "changed"}
    assert changes.note == ""
    place.apply(changes.files, back=True)
    assert (root / "edited.txt").read_bytes() == FILES["edited.txt"]


@pytest.mark.parametrize("version", ["2", "3", "4", "split"])
def test_every_kind_of_index_is_a_beginning(tmp_path: Path, version: str) -> None:
    root = repository(tmp_path / "root", FILES | {f"folder/{number}": b"x%d\n" % number for number in range(20)})
    write(root, {"intended": b"x"})
    git(root, "add", "-N", "intended")
    git(root, "update-index", "--assume-unchanged", "kept.txt")
    git(root, "update-index", "--skip-worktree", "folder/7")
    if version == "split":
        git(root, "update-index", "--split-index")
    else:
        git(root, "update-index", f"--index-version={version}")
    place = workspace(root)

    changes = turn(place, {"intended": b"y", "kept.txt": b"z", "folder/3": None, "folder/7": b"seven"})

    assert told(changes) == {"folder/3": "deleted", "folder/7": "changed", "intended": "changed", "kept.txt": "changed"}


def test_a_bare_repository_is_a_folder_like_others(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    git(tmp_path / "root", "init", "-q", "--bare")
    place = workspace(tmp_path / "root")

    assert told(turn(place, {"description": b"x"})) == {"description": "changed"}


def test_our_index_is_made_again_if_it_is_damaged(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    before = place.snapshot()
    (index,) = (tmp_path / "home").rglob("index")
    index.write_bytes(b"DIRC garbage")

    assert place.snapshot() == before


def test_a_moved_folder_is_another_one(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"edited.txt": b"x\n"})
    copytree(tmp_path / "root", tmp_path / "copy")

    other = workspace(tmp_path / "copy").compare(changes.before, changes.after)

    assert other.files == ()
    assert other.note.startswith("What changed in")
