from pathlib import Path

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    return Stage(tmp_path)


@pytest.fixture
def remembering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RememberingStage:
    """A stage whose agents keep session files, in folders of their own."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stage = RememberingStage(tmp_path)
    for name, value in stage.environment().items():
        monkeypatch.setenv(name, value)
    return stage


@pytest.fixture
def team(stage: Stage) -> Stage:
    """A person, and three agents that answer once."""
    stage.people_and_agents("kim", "a b c")
    return stage
