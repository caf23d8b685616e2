"""Everything that a server writes goes into the test's own folder."""

from pathlib import Path

import pytest
from tests.web.certificates import certificates

from bullpen.web import guard

__all__ = ["certificates"]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: None) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def connectionless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take requests that come over no connection for a person's."""
    monkeypatch.setattr(guard, "is_agents_connection", lambda *_: False)
