"""Worktrees of somebody's repository: made and removed, whatever is in the repository."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.files.random_turns import git
from tests.files.stage import repository

from bullpen.files.place import find_place
from bullpen.files.worktree import make_worktree, remove_worktree


def test_many_are_made_and_removed_at_the_same_time(tmp_path: Path) -> None:
    place = find_place(repository(tmp_path / "repo"))
    paths = [tmp_path / "worktrees" / f"agent{'x' * number}" for number in range(12)]

    def make_and_remove(path: Path) -> None:
        for _ in range(3):
            make_worktree(place, path)
            remove_worktree(place, path)
        make_worktree(place, path)

    with ThreadPoolExecutor(len(paths)) as threads:
        list(threads.map(make_and_remove, paths))
    listed = git(place.root, "worktree", "list", "--porcelain").decode()
    assert [path for path in paths if f"worktree {path}\n" not in listed] == []
    assert sorted(one.name for one in (place.root / ".git" / "worktrees").iterdir()) == [path.name for path in paths]


def test_it_is_removed_also_when_its_repository_is_gone(tmp_path: Path) -> None:
    place = find_place(repository(tmp_path / "repo"))
    path = tmp_path / "worktrees" / "agent"
    make_worktree(place, path)
    shutil.rmtree(place.root)
    remove_worktree(find_place(place.root), path)
    assert not path.exists()
