"""Digests of files that make programs run and that no snapshot has."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from bullpen.files import program_digests as digests
from bullpen.files.place import Place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "app" / "web").mkdir(parents=True)
    return root


def test_our_own_database_and_the_files_beside_it_are_left_out(root: Path) -> None:
    (root / ".data").mkdir()
    for name in ("c.db", "c.db-wal", "trusted.json"):
        (root / ".data" / name).touch()

    found = digests.program_digests(Place(root, git_dir=None, common_dir=None), (), (".data/c.db",))

    assert names(found) == [".data/trusted.json"]


def looked(root: Path, *folders: str, git: Path | None = None) -> dict[str, str]:
    return digests.program_digests(Place(root, git_dir=git, common_dir=git), folders)


def names(found: Iterable[str]) -> list[str]:
    return [name for name in found if not name.endswith("/")]


def test_such_files_at_the_top_and_in_the_named_folders_and_those_above_them_are_found(root: Path) -> None:
    for name in (".env", "app/.env", "app/web/.env", "app/code.py", "app/other/.env"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()

    found = looked(root, "app/web")

    assert names(found) == [".env", "app/.env", "app/web/.env"]
    assert digests.looked_at(found) == (".", "app", "app/web")
    assert names(looked(root)) == [".env"]


def test_nothing_is_looked_at_through_a_link_or_outside(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / ".env").touch()
    (root / "link").symlink_to(outside)
    (root / "inner").symlink_to("app")
    (root / "app" / ".env").touch()

    assert names(looked(root, "link", "inner", "..", str(outside))) == []


def test_what_is_in_git_folders_is_found_and_what_tools_write_is_not(root: Path) -> None:
    git = root.parent / "git"
    for name in ("hooks/pre-commit", "info/attributes", "info/exclude", "objects/x"):
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).touch()
    (root / "app" / ".git").mkdir()
    for name in ("app/.git/config", "app/.git/HEAD", ".claude/hooks/x", ".claude/__pycache__/y", ".venv/z"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()

    assert names(looked(root, "app", git=git)) == [
        f"{git}/hooks/pre-commit",
        f"{git}/info/attributes",
        ".claude/hooks/x",
        "app/.git/config",
    ]


@pytest.mark.parametrize("size", [3, digests.MOST_READ + 1])
def test_a_change_of_content_mode_or_kind_is_a_change(root: Path, size: int) -> None:
    file = root / ".env"
    file.write_bytes(b"a" * size)
    os.utime(file, ns=(0, 0))
    seen = [looked(root)[".env"]]
    assert looked(root)[".env"] == seen[0]

    file.write_bytes(b"b" * size)
    seen.append(looked(root)[".env"])
    file.chmod(0o755)
    seen.append(looked(root)[".env"])
    for target in ("one", "two"):
        file.unlink()
        file.symlink_to(target)
        seen.append(looked(root)[".env"])
    file.unlink()
    os.mkfifo(file)
    seen.append(looked(root)[".env"])

    assert len(set(seen)) == len(seen)


def test_branches_in_the_settings_of_git_do_not_count_and_everything_else_does(root: Path) -> None:
    git = root / ".git"
    git.mkdir()
    usual = '[core]\n\tbare = false\n[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n'
    found = {}
    for name, text in {
        "usual": usual,
        "another branch": usual.replace("x", "y"),
        "none": "[core]\n\tbare = false\n",
        "a command": usual.replace("origin", "ext::sh"),
        "a monitor": f"{usual}[core]\n\tfsmonitor = ./x\n",
    }.items():
        (git / "config").write_text(text)
        found[name] = looked(root)[".git/config"]

    assert found["usual"] == found["another branch"] == found["none"]
    assert len(set(found.values())) == 3


def test_no_more_are_looked_at_than_a_limit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MOST_FILES", 4)
    for number in range(5):
        (root / f".x{number}").touch()

    # With the folder itself.
    assert list(looked(root)) == ["./", ".x0", ".x1", ".x2"]
