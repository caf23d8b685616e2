"""What is kept of files shrinks: what is needed stays, all else goes, and nothing goes while anybody uses it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace
from tests import forked
from tests.files.random_turns import Files, RandomFolder, files_in, git
from tests.files.stage import kept_bytes, repository, turn, workspace, write

from bullpen.errors import FilesDiffer, FilesNotKept
from bullpen.file_changes import FolderChanges
from bullpen.files.holding import alone, hold
from bullpen.files.shrink import ids_in, shrink
from bullpen.files.workspace import FolderSnapshots, Workspace


def shrunk(home: Path, kept: Sequence[FolderChanges]) -> int:
    """Remove all that these changes do not name."""
    with alone(home) as is_alone:
        assert is_alone
        return shrink(home, ids_in(msgspec.json.encode(kept)), {one.folder for one in kept})


def blobs(changes: FolderChanges) -> set[str]:
    return {state.blob for file in changes.files for state in (file.old, file.new) if state is not None}


def random_turns(folder: RandomFolder, place: Workspace, count: int) -> tuple[list[FolderChanges], list[Files]]:
    """Take turns, and return what each changed, and all files before the first and after each."""
    made: list[FolderChanges] = []
    files, before = [files_in(folder.root)], place.snapshot().id
    for _ in range(count):
        folder.act(folder.random.randrange(1, 9))
        after = place.snapshot().id
        made.append(place.compare(before, after))
        files.append(files_in(folder.root))
        before = after
    return made, files


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_can_still_be_taken_back(seed: int, tmp_path: Path) -> None:
    folder = RandomFolder(tmp_path, Random(seed))
    folder.prepare()
    home, count = tmp_path / "home", 5
    place = FolderSnapshots(home).workspace(folder.root)
    made, files = random_turns(folder, place, count)
    first = folder.random.randrange(count)

    shrunk(home, made[first:])

    for changes in made[first:]:
        assert place.compare(changes.before, changes.after) == changes
    for number in reversed(range(first, count)):
        try:
            place.apply(made[number].files, back=True)
        except FilesDiffer:
            # A repository was made in the place of a file.
            return
        assert files_in(folder.root) == files[number]
    for number in range(first, count):
        place.apply(made[number].files, back=False)
        assert files_in(folder.root) == files[number + 1]


@pytest.mark.parametrize(("count", "is_repository"), [(3, True), (3, False), (600, True)])
def test_what_nobody_names_goes_also_out_of_packs(count: int, is_repository: bool, tmp_path: Path) -> None:
    root = tmp_path / "root"
    if is_repository:
        repository(root)
    else:
        write(root, {"first.txt": b"first"})
    place = workspace(root)
    old = turn(place, {f"{number}.txt": Random(number).randbytes(1000) for number in range(count)})
    new = turn(place, {f"{number}.txt": None if number % 2 else b"new" for number in range(count)})
    later = turn(place, {"0.txt": b"later"})

    freed = shrunk(tmp_path / "home", [later])

    assert freed > count * 500
    assert place.compare(later.before, later.after) == later
    for gone in sorted(blobs(old) - blobs(new) - blobs(later))[:5]:
        with pytest.raises(FilesNotKept):
            place.contents(gone)
    for there in blobs(later):
        place.contents(there)
    assert shrunk(tmp_path / "home", [later]) == 0


def test_a_repository_that_has_lost_trees_loses_nothing_more(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", {f"{folder}/{name}.txt": b"x" for folder in "abc" for name in "de"})
    place = workspace(root)
    changes = turn(place, {"a/d.txt": b"new", "b/d.txt": None})
    git(root, "checkout", "-q", "--orphan", "empty")
    git(root, "rm", "-rqf", ".")
    git(root, "commit", "-q", "--allow-empty", "-m", "nothing")
    git(root, "branch", "-D", "master", "-f")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")

    shrunk(tmp_path / "home", [changes])

    for blob in blobs(changes):
        place.contents(blob)


def test_of_a_folder_that_nobody_names_nothing_is_left(tmp_path: Path) -> None:
    one, other = repository(tmp_path / "one"), repository(tmp_path / "other")
    kept = turn(workspace(one), {"a.txt": b"a"})
    turn(workspace(other), {"a.txt": b"a"})
    home = tmp_path / "home"

    shrunk(home, [kept])

    assert len(list(home.glob("*/roots/*"))) == 1
    assert turn(workspace(other), {"a.txt": b"b"}).note == "", "it begins again"
    shrunk(home, [])
    assert not list(home.glob("*/roots"))
    assert kept_bytes(home) == 0


def test_nothing_goes_while_somebody_uses_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    snapshots = FolderSnapshots(home)
    snapshots.workspace(repository(tmp_path / "root"))

    with alone(home) as is_alone:
        assert not is_alone
    del snapshots
    with alone(home) as is_alone:
        assert is_alone

    source = f"from bullpen.files.holding import hold; from pathlib import Path; hold(Path({str(home)!r})); input()"
    with forked.start([sys.executable, "-c", f"{source}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        try:
            while True:
                with alone(home) as is_alone:
                    if not is_alone:
                        break
        finally:
            other.kill()
    with alone(home) as is_alone:
        assert is_alone


def test_where_there_cannot_be_a_lock_nothing_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("not a folder")

    assert hold(home) is None
    with alone(home) as is_alone:
        assert not is_alone


def test_a_folder_that_cannot_be_looked_at_keeps_nothing(tmp_path: Path) -> None:
    """An import may name any."""
    place = workspace(repository(tmp_path / "root"))
    turn(place, {"a.txt": b"old"})
    turn(place, {"a.txt": b"between"})
    new = turn(place, {"a.txt": b"new"})
    far = replace(new, folder=f"/{'x' * 300}")
    assert shrunk(tmp_path / "home", [new, far]) > 0
