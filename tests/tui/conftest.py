"""What the stories of the full screen share."""

import os
from pathlib import Path

import pytest
from tests.tui.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A folder with a team to be, on a machine where its agents are installed."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("COLORFGBG", raising=False)
    return Stage(tmp_path)
