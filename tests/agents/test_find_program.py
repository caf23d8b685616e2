"""Where programs are looked for: never in a folder that a cloned repository brings along."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from bullpen.agents.environment import child_environment
from bullpen.agents.registry import spec_for
from bullpen.agents.runner import find_program


def program(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "claude").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "claude").chmod(0o755)
    return str(folder / "claude")


def clone(tmp_path: Path) -> Path:
    """Return a repository that brings a program along."""
    folder = tmp_path / "clone"
    program(folder / "bin")
    (folder / ".git").mkdir()
    (folder / "sub").mkdir()
    return folder


def test_a_relative_folder_of_path_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone(tmp_path))
    own = program(tmp_path / "own")
    for relative in ("bin", "./bin", "", ".", "../clone/bin"):
        path = f"{relative}{os.pathsep}{tmp_path / 'own'}"
        assert find_program("claude", {"PATH": path}, tmp_path) == own
        assert find_program("claude", {"PATH": relative}, tmp_path) is None
        # Nor may it start node or git from there.
        given = child_environment(replace(spec_for("claude"), environment=()), ours={"PATH": path})
        assert given["PATH"] == str(tmp_path / "own")
    assert child_environment(spec_for("claude"), ours={"PATH": "./bin"})["PATH"] == os.defpath


def test_a_folder_of_path_in_the_repository_is_left_out(tmp_path: Path) -> None:
    repository, own = clone(tmp_path), program(tmp_path / "own")
    (tmp_path / "link").symlink_to(repository / "bin")
    for within in (repository / "bin", tmp_path / "link"):
        for cwd in (repository, repository / "sub"):
            path = f"{within}{os.pathsep}{tmp_path / 'own'}"
            assert find_program("claude", {"PATH": path}, cwd) == own
            assert find_program("claude", {"PATH": str(within)}, cwd) is None
    # Elsewhere it is a folder like any other.
    assert find_program("claude", {"PATH": str(repository / "bin")}, tmp_path) == str(repository / "bin" / "claude")


def test_programs_of_an_activated_environment_are_found(tmp_path: Path) -> None:
    repository = clone(tmp_path)
    own = program(repository / ".venv" / "bin")
    (repository / ".venv" / "pyvenv.cfg").touch()
    assert find_program("claude", {"PATH": str(repository / ".venv" / "bin")}, repository) == own


def test_what_is_installed_in_a_home_that_is_a_repository_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = clone(tmp_path)
    monkeypatch.setenv("HOME", str(home))
    assert find_program("claude", {"PATH": str(home / "bin")}, home / "sub") == str(home / "bin" / "claude")
    assert find_program("./bin/claude", {"PATH": ""}, home) == str(home / "bin" / "claude")
