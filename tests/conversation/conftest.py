from pathlib import Path

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import Stage

from bullpen.conversation import recorded_agents
from bullpen.conversation.turn_agents import is_watched, may_change_files


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: None) -> Stage:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    # A look at a folder takes longer than all that agents do here who only talk. What looks is tried with those that
    # may edit, and with commands in test_told_apart.py.
    monkeypatch.setattr(recorded_agents, "is_watched", may_change_files)
    return Stage(tmp_path)


@pytest.fixture
def remembering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: None) -> RememberingStage:
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


@pytest.fixture
def commands_are_watched(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at what commands change that may only read, as usual."""
    monkeypatch.setattr(recorded_agents, "is_watched", is_watched)
