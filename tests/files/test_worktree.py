"""Worktrees of somebody's repository: made and removed, whatever is in the repository."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.files.random_turns import git
from tests.files.stage import repository, write

from bullpen.files.own_paths import own_path
from bullpen.files.own_workspace import OwnWorkspace, remove_own_workspaces
from bullpen.files.place import find_place
from bullpen.files.workspace import FolderSnapshots
from bullpen.files.worktree import make_worktree, remove_worktree, why_no_worktree


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


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        ("rm -rf .git/objects/??", "its last commit COMMIT cannot be read"),
        ("chmod -R u+w .git; for file in .git/objects/??/*; do : > $file; done", "its last commit COMMIT cannot be"),
        (": > .git/refs/heads/main", "git symbolic-ref: No such ref: HEAD"),
        ("echo COMMIT > .git/HEAD; rm -rf .git/objects/??", "its last commit COMMIT cannot be read"),
        ("echo nonsense > .git/HEAD", "ROOT/.git has no valid HEAD"),
        ("rm -rf .git/objects", "ROOT/.git has no folder objects"),
        ("rm -rf .git/refs", "ROOT/.git has no folder refs"),
        ("echo '[core' > .git/config", "git symbolic-ref: bad config line 1 in file "),
        ("rm .git/HEAD", "ROOT/.git has no valid HEAD"),
        ("rm -rf .git; echo 'gitdir: /nowhere' > .git", "ROOT/.git names no git folder"),
    ],
)
def test_what_is_wrong_with_a_damaged_repository_is_said(tmp_path: Path, harm: str, what: str) -> None:
    root = repository(tmp_path / "repo")
    git(root, "branch", "-M", "main")
    (root / "below").mkdir()
    commit = git(root, "rev-parse", "HEAD").decode().strip()
    subprocess.run(["sh", "-ec", harm.replace("COMMIT", commit)], cwd=root, check=True)
    reason = why_no_worktree(root / "below")
    told = what.replace("COMMIT", commit).replace("ROOT", str(root))
    assert reason.startswith(f"the repository {root} is damaged: {told}")
    assert reason.endswith(". Repair it first; `git fsck` may say more")


def test_a_branch_without_a_commit_is_not_damaged(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    assert why_no_worktree(root) == ""
    git(root, "checkout", "-q", "--orphan", "new")
    assert why_no_worktree(root) == f"the repository {root} has no commit yet. Commit something first"
    plain = tmp_path / "plain"
    (plain / ".git").mkdir(parents=True)
    assert why_no_worktree(plain).startswith(f"{plain} is not in a git repository.")
    assert why_no_worktree(root / ".git" / "hooks").startswith(f"{root / '.git' / 'hooks'} is not in a git repository.")


def own_workspace(root: Path) -> OwnWorkspace:
    """Return the workspace of an agent of its own, with all files in it."""
    home = root.parent / "home"
    snapshots = FolderSnapshots(home)
    own = OwnWorkspace(snapshots, own_path(home, "calm-fox-000001", "ann"), "ann", root)
    own.bring_up_to_date(snapshots.workspace(root).snapshot().id, own.path)
    return own


def status(root: Path) -> list[str]:
    return git(root, "status", "--porcelain").decode().splitlines()


def files(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def test_nothing_of_the_repository_is_run(tmp_path: Path) -> None:
    root, ran = repository(tmp_path / "repo"), tmp_path / "ran"
    write(root, {".gitattributes": b"* filter=evil diff=evil merge=evil ident text eol=crlf\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "attributes")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"):
        file = root / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {hook} >> {ran}\n", encoding="utf-8")
        file.chmod(0o755)
    script = tmp_path / "evil"
    script.write_text(f'#!/bin/sh\necho "$@" >> {ran}\ncat\n', encoding="utf-8")
    script.chmod(0o755)
    for name, value in {
        "filter.evil.smudge": f"{script} smudge",
        "filter.evil.clean": f"{script} clean",
        "filter.evil.process": f"{script} process",
        "filter.evil.required": "true",
        "diff.evil.textconv": f"{script} textconv",
        "diff.evil.command": f"{script} diff",
        "merge.evil.driver": f"{script} merge",
        "core.fsmonitor": str(root / ".git" / "hooks" / "fsmonitor-watchman"),
        "core.alternateRefsCommand": f"{script} refs",
        "core.hooksPath": str(root / ".git" / "hooks"),
    }.items():
        git(root, "config", name, value)

    own = own_workspace(root)
    write(own.path, {"edited.txt": b"of ann\n"})
    write(root, {"kept.txt": b"of kim\n"})
    shared = FolderSnapshots(root.parent / "home").workspace(root)
    shared.merge(own.state.base, shared.snapshot().id, own.look())
    own.bring_up_to_date(shared.snapshot().id, own.path)
    own.remove()

    assert not ran.exists(), ran.read_text(encoding="utf-8")


def test_where_no_agent_had_a_worktree_there_is_none_to_remove(tmp_path: Path) -> None:
    remove_own_workspaces(tmp_path / "home", "calm-fox-000001")

    assert not (tmp_path / "home").exists()


def test_what_was_taken_back_in_a_worktree_does_not_return_when_somebody_removes_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    own = own_workspace(root)
    before = (own.path / "edited.txt").read_bytes()
    write(own.path, {"edited.txt": b"of ann\n"})
    own.note(seen=own.look())
    write(own.path, {"edited.txt": before})

    own.bring_up_to_date(own.state.base, own.path)
    shutil.rmtree(own.path)

    assert not own.has_unmerged_work()


def test_the_files_of_submodules_are_there(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"inside.txt": b"inside\n"})
    root = repository(tmp_path / "repo")
    git(root, "submodule", "-q", "add", str(inner), "sub")
    git(root, "commit", "-q", "-m", "submodule")
    write(root / "sub", {"untracked.txt": b"untracked\n"})

    own = own_workspace(root)

    assert files(own.path) == files(root)
    assert status(own.path) == []


def test_a_sparse_checkout_is_as_sparse_in_the_worktree(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a/1.txt": b"1\n", "b/2.txt": b"2\n", "top.txt": b"top\n"})
    git(root, "sparse-checkout", "set", "a")
    assert not (root / "b").exists()

    own = own_workspace(root)

    assert files(own.path) == files(root) == {"a/1.txt": b"1\n", "top.txt": b"top\n"}
    assert status(own.path) == status(root) == []


def test_a_linked_worktree_has_worktrees_beside_it(tmp_path: Path) -> None:
    main = repository(tmp_path / "repo")
    root = tmp_path / "linked"
    git(main, "worktree", "add", "-q", "-b", "other", str(root))
    write(root, {"edited.txt": b"dirty\n", "new.txt": b"new\n"})
    git(root, "add", "new.txt")

    own = own_workspace(root)

    assert files(own.path) == files(root)
    assert status(own.path) == status(root) == [" M edited.txt", "A  new.txt"]
    own.remove()
    assert [one.name for one in (main / ".git" / "worktrees").iterdir()] == ["linked"]
