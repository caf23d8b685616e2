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


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*clis): genuine CLIs that a test runs, beside its parameter `cli`")


@pytest.fixture(scope="module", autouse=True)
def no_way_out() -> Iterator[None]:
    """Let nobody talk to the world."""
    with isolation.loopback_only():
        yield


@pytest.fixture(autouse=True)
def genuine_clis(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the genuine CLIs that a test names first on the PATH, and no others; skip it if one is missing."""
    named = {cli for marker in request.node.iter_markers("needs") for cli in marker.args}
    if hasattr(request.node, "callspec") and "cli" in request.node.callspec.params:
        named.add(request.node.callspec.params["cli"])
    installed = sorted(named & {*install.ALL})
    for cli in installed:
        if not install.is_installed(cli):
            pytest.skip(f"{cli.upper()} IS NOT INSTALLED: run python tests/agents/real_cli/install.py")
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, map(install.folder, installed)), os.environ["PATH"]]))


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
