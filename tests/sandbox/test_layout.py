"""What is looked up of a folder, its repository and a home, with real files."""

import os
import subprocess
from pathlib import Path

import pytest

from bullpen.sandbox.caches import cache_variables
from bullpen.sandbox.layout import Surroundings, held_in, layout_of, placeholders, repository_of
from bullpen.sandbox.placeholders import placed
from bullpen.sandbox.rules import OwnFiles, OwnFolder, SandboxRules

OWN = OwnFiles(folders=(OwnFolder(path=".tool", settings=("settings.json", "hooks")),), copies=(".tool.json",))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    folder = tmp_path / "shop"
    folder.mkdir()
    return os.path.realpath(folder)


def git(folder: str | Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def below(folder: str, paths: tuple[str, ...]) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in paths)


def test_a_commit_writes_in_its_repository_but_for_what_runs(folder: str) -> None:
    git(folder, "init", "-q")
    Path(folder, "part").mkdir()

    found = repository_of(f"{folder}/part")

    assert below(folder, found.written) == [".git"]
    assert below(folder, found.read_only) == [".git/config", ".git/hooks", ".git/info"]
    assert below(folder, found.new) == [".git/commondir", ".git/config.worktree"]


def test_in_a_worktree_only_its_own_part_and_the_objects_are_written(folder: str, tmp_path: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "-c", "user.name=k", "-c", "user.email=k@x", "commit", "-q", "--allow-empty", "-m", "x")
    git(folder, "worktree", "add", "-q", str(tmp_path / "own"))

    found = repository_of(os.path.realpath(tmp_path / "own"))

    assert below(f"{folder}/.git", found.written) == ["logs", "objects", "refs", "worktrees/own"]
    assert f"{folder}/.git/worktrees/own/commondir" in found.read_only


def test_a_git_file_that_leads_elsewhere_lets_nothing_be_written(folder: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "victim")
    Path(folder, ".git").write_text(f"gitdir: {tmp_path}/victim/.git\n")

    assert repository_of(folder).written == ()


def test_what_makes_programs_run_is_held_and_of_it_less_if_a_person_may_say_yes(folder: str) -> None:
    for name in (".claude", ".vscode", ".pytest_cache", "src", "prepare-commit-msg"):
        Path(folder, name).mkdir()
    for name in (".envrc", ".gitignore", "opencode.json", "main.py", "package.json", "team.toml"):
        Path(folder, name).write_text("")
    Path(folder, "other.toml").write_text('[[member]]\nname = "kim"\n')

    edit, ask = held_in(folder, "edit"), held_in(folder, "ask")

    assert below(folder, edit) == [".claude", ".envrc", ".vscode", "opencode.json", "other.toml", "team.toml"]
    assert below(folder, ask) == [".claude", "opencode.json", "other.toml", "team.toml"]


def test_folders_of_settings_that_are_missing_get_a_placeholder(folder: str) -> None:
    Path(folder, ".claude").mkdir()

    found = below(folder, placeholders(folder, "ask", [f"{folder}/.qwen"]))

    assert found == [".agents", ".codex", ".copilot", ".gemini", ".opencode", ".pi", ".vibe"]


def test_placeholders_are_gone_when_the_last_one_leaves_and_never_with_something_in_them(
    folder: str, tmp_path: Path
) -> None:
    paths = [f"{folder}/.a", f"{folder}/.b"]

    with placed(folder, paths, tmp_path / "notes") as first:
        with placed(folder, paths, tmp_path / "notes") as second:
            assert first == second == tuple(paths)
        assert Path(folder, ".a").is_dir()
        Path(folder, ".b", "mine").write_text("x")

    assert [entry.name for entry in Path(folder).iterdir()] == [".b"]
    assert list((tmp_path / "notes").iterdir()) == []


def test_what_a_crash_left_is_removed_by_the_next_one(folder: str, tmp_path: Path) -> None:
    manager = placed(folder, [f"{folder}/.a"], tmp_path / "notes")
    manager.__enter__()
    (note,) = (tmp_path / "notes").iterdir()
    content = note.read_bytes()
    manager.__exit__(None, None, None)
    Path(folder, ".a").mkdir()
    note.write_bytes(content)

    with placed(folder, [f"{folder}/.b"], tmp_path / "notes"):
        pass

    assert list(Path(folder).iterdir()) == []


def test_a_layout_knows_what_is_the_clis_own(folder: str, tmp_path: Path) -> None:
    home = Path(os.path.realpath(tmp_path), "home")
    (home / ".tool").mkdir(parents=True)
    (home / ".tool" / "settings.json").write_text("{}")
    (home / ".tool.json").write_text("{}")
    (home / ".ssh").mkdir()
    around = Surroundings(
        folder=Path(folder),
        command=("tool",),
        environment={"HOME": str(home)},
        own=OWN,
        others=(OwnFiles(folders=(OwnFolder(path=".other"),)),),
        private=tmp_path / "private" / "tmp",
    )
    (home / ".other").mkdir()

    found = layout_of(around, SandboxRules(writable=("~/.cache/uv", "build")), "edit")

    assert found.written == (f"{home}/.tool", f"{home}/.cache/uv", f"{folder}/build")
    assert f"{home}/.tool/settings.json" in found.read_only
    assert (f"{home}/.tool/hooks", None) in found.must_stay
    assert {f"{home}/.other", f"{home}/.ssh"} <= {*found.hidden_folders}
    assert found.copies == ((f"{home}/.tool.json", f"{tmp_path}/private/copy-0"),)
    assert f"{home}/.ssh" not in layout_of(around, SandboxRules(), "ask").hidden_folders


def test_tools_keep_elsewhere_what_they_may_not_keep_in_their_own() -> None:
    found = cache_variables({"UV_CACHE_DIR": "/mine"}, "/tmp")

    assert "UV_CACHE_DIR" not in found
    assert found["npm_config_cache"].startswith("/tmp/cache/npm")
