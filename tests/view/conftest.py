"""What the tests of the view share."""

from pathlib import Path

import pytest
from tests.tui.rest import rest
from tests.web.certificates import certificates

__all__ = ["certificates", "rest"]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: None) -> None:
    """Keep everything in the test's own folder, and let scripted agents play inside the test's process."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
