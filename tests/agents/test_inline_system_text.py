"""Which programs are known to refuse a file with the system text."""

import sys
from pathlib import Path

import pytest

from bullpen.agents.inline_system_text import refuses_file


def test_where_nothing_can_be_remembered_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / ("x" * 300)))

    assert not refuses_file(sys.executable)
