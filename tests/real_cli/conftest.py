"""The genuine CLIs, each pointed at a scripted model on loopback, in a home of its own."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


def _beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


install, isolation = _beside("install"), _beside("isolation")
HOME_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "QWEN_HOME")
"""Where a CLI keeps its files if not in the home."""


@pytest.fixture(scope="module", autouse=True)
def genuine_clis() -> Iterator[None]:
    """Put the genuine CLIs first on the PATH, in a network without a way out."""
    if not install.is_installed():
        pytest.skip("THE GENUINE AGENT CLIS ARE NOT INSTALLED: run `make test`, or python tests/real_cli/install.py")
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{install.binaries()}{os.pathsep}{path}"
    with isolation.loopback_only():
        yield
    os.environ["PATH"] = path


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bullpen keep nothing outside of the test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "data"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which a person works, with a file, and with the test's home as the person's."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("alpha\nbeta\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in HOME_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(folder)
    return folder
