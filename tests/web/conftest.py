"""Everything that a server writes goes into the test's own folder."""

from pathlib import Path

import pytest
from tests.web.certificates import certificates

__all__ = ["certificates"]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: None) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
