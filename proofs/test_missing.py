"""What cannot be tried on a machine is said."""

from pathlib import Path

import pytest
from proofs import missing
from tests.agents.real_cli import install as clis
from tests.store.postgres import install as postgres
from tests.web.browser import install as browser


def test_on_a_bare_machine_there_is_a_line_for_each_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BULLPEN_TEST_POSTGRES", raising=False)
    monkeypatch.setattr(clis, "CACHE", tmp_path)
    monkeypatch.setattr(browser, "CACHE", tmp_path)
    monkeypatch.setattr(postgres, "is_there", lambda: None)

    missing.main()

    told = capsys.readouterr().err.splitlines()
    named = [line.removeprefix("!!! NOT TRIED HERE: ").partition(": ")[0] for line in told]
    assert named == [*clis.ALL, "vibe-acp", "chromium", "axe-core", "PostgreSQL", "systemd-analyze", "cc"]


def test_nothing_is_said_of_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*clis.ALL, "vibe-acp", "chromium", "systemd-analyze", "cc"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BULLPEN_TEST_POSTGRES", "somewhere")
    monkeypatch.setattr(clis, "binaries", lambda: tmp_path)
    monkeypatch.setattr(browser, "axe", lambda: tmp_path)

    assert missing.missing() == []
