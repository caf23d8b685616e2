"""What the stories of the full screen share."""

import os
from pathlib import Path

import pytest
from tests.tui.rest import rest
from tests.tui.stage import Stage

__all__ = ["rest"]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: None) -> Stage:
    """A folder with a team to be, on a machine where its agents are installed."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("COLORFGBG", raising=False)
    return Stage(tmp_path)
