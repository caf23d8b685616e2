"""What was there before a turn and in no snapshot is never taken for what the turn made."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.files.random_turns import git
from tests.files.stage import repository, told, workspace, write

from bullpen.file_changes import FolderChanges
from bullpen.files import snapshot as snapshots
from bullpen.files.kept import compare_kept
from bullpen.files.shrink import shrink
from bullpen.files.workspace import FolderSnapshots, Workspace

SECRETS = {"secret.txt": b"mine\n", ".env": b"TOKEN=1\n", "private/deep/key": b"k\n", "src/a.o": b"object\n"}
RULES = b"secret.txt\n.env\nprivate/\n*.o\n"
NOTE = (
    ".env, private/deep/key, secret.txt and 1 more were ignored, too large or not readable before, so what changed "
    "there is not known, and undo leaves them alone."
)


def seen(place: Workspace, act: Callable[[Path], object]) -> FolderChanges:
    """Return what is seen of somebody's act, and take it back."""
    before = place.snapshot()
    act(place.root)
    changes = place.compare(before.id, place.snapshot().id)
    place.apply(changes.files, back=True)
    return changes


def contents(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in SECRETS if (root / name).exists()}


def empty(root: Path) -> None:
    write(root, {".gitignore": b"", "src/new.py": b"new\n"})


def nested(root: Path) -> None:
    for name in ("src/.gitignore", ".gitignore"):
        write(root, {name: b"!*\n"})
    write(root, {"src/new.py": b"new\n"})


def add_by_force(root: Path) -> None:
    git(root, "add", "-f", *SECRETS)
    write(root, {"src/new.py": b"new\n"})


@pytest.mark.parametrize("act", [empty, nested, add_by_force])
def test_ignored_files_are_not_new_when_rules_change(tmp_path: Path, act: Callable[[Path], None]) -> None:
    place = workspace(repository(tmp_path / "root", {".gitignore": RULES, "src/a.py": b"a\n"}))
    write(place.root, SECRETS)

    changes = seen(place, act)

    assert told(changes).items() >= {"src/new.py": "added"}.items()
    assert not told(changes).keys() & SECRETS.keys()
    assert changes.note == NOTE
    assert "TOKEN" not in changes.patch
    assert "new.py" in changes.patch
    assert contents(place.root) == SECRETS
    assert not (place.root / "src/new.py").exists()


def test_ignored_files_are_not_new_when_rules_elsewhere_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = f"[core]\n\texcludesFile = {tmp_path}/everywhere\n".encode()
    write(tmp_path, {".gitconfig": everywhere, "everywhere": b"secret.txt\n.env\n"})
    monkeypatch.setenv("HOME", str(tmp_path))
    place = workspace(repository(tmp_path / "root", {"src/a.py": b"a\n"}))
    write(place.root, {".git/info/exclude": b"private/\n*.o\n", **SECRETS})

    def act(root: Path) -> None:
        (tmp_path / "everywhere").unlink()
        write(root, {".git/info/exclude": b"", "src/new.py": b"new\n"})

    changes = seen(place, act)

    assert (told(changes), changes.note) == ({"src/new.py": "added"}, NOTE)
    assert contents(place.root) == SECRETS


def test_a_folder_that_becomes_a_repository_keeps_what_was_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "root", {"a.py": b"a\n", ".venv/bin/python": b"x", "node_modules/b": b"y"})
    place = workspace(tmp_path / "root")
    before = place.snapshot()
    git(place.root, "init", "-q")
    write(place.root, {"new.py": b"n"})

    again = workspace(place.root)
    changes = again.compare(before.id, again.snapshot().id)
    again.apply(changes.files, back=True)

    assert told(changes) == {"new.py": "added"}
    assert (place.root / ".venv/bin/python").exists()
    assert (place.root / "node_modules/b").exists()


def test_what_a_turn_does_to_files_that_it_lets_git_ignore_is_seen_and_taken_back(tmp_path: Path) -> None:
    files = {"a.py": b"a\n", "b.py": b"b\n", "c.py": b"c\n"}
    place = workspace(repository(tmp_path / "root", files))
    write(place.root, {"untracked.py": b"u\n"})

    def act(root: Path) -> None:
        write(root, {".gitignore": b"*.py\n", "a.py": b"x\n", "untracked.py": b"x\n", "new.py": b"ignored\n"})
        git(root, "rm", "-q", "--cached", "a.py", "b.py")
        (root / "b.py").unlink()
        (root / "c.py").unlink()
        write(root, {"c.py": b"again\n"})

    changes = seen(place, act)

    assert told(changes) == {
        ".gitignore": "added",
        "a.py": "changed",
        "b.py": "deleted",
        "c.py": "changed",
        "untracked.py": "changed",
    }
    assert {name: (place.root / name).read_bytes() for name in files} == files
    assert (place.root / "untracked.py").read_bytes() == b"u\n"


def test_a_file_that_is_moved_over_an_ignored_one_is_brought_back_and_the_other_stays(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root", {".gitignore": RULES, "a.py": b"a\n" * 50}))
    write(place.root, SECRETS)

    def act(root: Path) -> None:
        (root / "a.py").rename(root / "secret.txt")
        write(root, {".gitignore": b""})

    changes = seen(place, act)

    assert told(changes) == {".gitignore": "changed", "a.py": "deleted"}
    assert (place.root / "a.py").read_bytes() == b"a\n" * 50
    assert (place.root / "secret.txt").exists()


def test_an_undo_puts_no_older_contents_where_a_large_file_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST_FILE_BYTES", 1000)
    place = workspace(repository(tmp_path / "root", {"grown": b"small\n"}))
    place.snapshot()
    write(place.root, {"grown": b"x" * 2000, "large": b"y" * 2000})

    changes = seen(place, lambda root: write(root, {"grown": b"cut", "large": b"cut", "new": b"n"}))

    assert told(changes) == {"new": "added"}
    assert changes.note.startswith("grown, large were ignored, too large or not readable before")
    assert ((place.root / "grown").read_bytes(), (place.root / "large").read_bytes()) == (b"cut", b"cut")


def test_new_files_beside_ignored_ones_are_new(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root", {".gitignore": b"*.o\nout/\n", "a.py": b"a\n"}))
    write(place.root, {"only/objects/a.o": b"o"})

    def act(root: Path) -> None:
        write(root, {"only/objects/new.c": b"c", "only/new.c": b"c", ".gitignore": b"", "out/made": b"m"})

    changes = seen(place, act)

    assert told(changes) == {
        ".gitignore": "changed",
        "only/new.c": "added",
        "only/objects/new.c": "added",
        "out/made": "added",
    }
    assert (place.root / "only/objects/a.o").exists()
    assert not (place.root / "out").exists()


def test_ignored_files_of_repositories_within_stay(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root", {"a.py": b"a\n"}))
    repository(place.root / "inner", {".gitignore": b".env\n", "b.py": b"b\n"})
    write(place.root, {"inner/.env": b"TOKEN=1\n"})

    changes = seen(place, lambda root: write(root, {"inner/.gitignore": b""}))

    assert told(changes) == {"inner/.gitignore": "changed"}
    assert (place.root / "inner/.env").read_bytes() == b"TOKEN=1\n"


def test_going_back_to_a_moment_leaves_what_was_ignored_then(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root", {".gitignore": RULES, "src/a.py": b"a\n"}))
    write(place.root, SECRETS)
    goal = place.snapshot().id
    empty(place.root)
    place.snapshot()
    write(place.root, {"later": b"l"})

    changes = place.compare(place.snapshot().id, goal)
    place.apply(changes.files, back=False)

    assert told(changes) == {".gitignore": "changed", "later": "deleted", "src/new.py": "deleted"}
    assert contents(place.root) == SECRETS
    both = compare_kept(tmp_path / "home", str(place.root), goal, changes.before)
    assert told(both) == {".gitignore": "changed", "later": "added", "src/new.py": "added"}
    assert both.note == NOTE


def test_names_that_cannot_be_shown(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root", {".gitignore": b"*.key\n", "a.py": b"a\n"}))
    names = [os.fsdecode(name) for name in (b"new\nline.key", b"\xff.key", b"-dash.key", b"A.key", b"a.key")]
    write(place.root, dict.fromkeys(names, b"mine"))

    changes = seen(place, empty)

    assert told(changes) == {".gitignore": "changed", "src/new.py": "added"}
    assert {(place.root / name).read_bytes() for name in names} == {b"mine"}
    assert changes.note


def test_what_was_beside_snapshots_that_nobody_needs_is_forgotten(tmp_path: Path) -> None:
    snapshots_home = FolderSnapshots(tmp_path / "home")
    place = snapshots_home.workspace(repository(tmp_path / "root", {".gitignore": RULES}))
    write(place.root, SECRETS)
    trees = []
    for number in range(3):
        write(place.root, {"a": b"%d" % number})
        trees.append(place.snapshot().id)
    snapshots_home.let_go()

    shrink(tmp_path / "home", {trees[0]}, {str(place.root)})

    left = {file.name for file in (tmp_path / "home").glob("*/roots/*/beside/*")}
    assert left == {trees[0], trees[2]}
