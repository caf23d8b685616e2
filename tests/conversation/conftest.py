import asyncio
import inspect
from pathlib import Path

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import Stage

LONGEST_STORY_SECONDS = 100


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), LONGEST_STORY_SECONDS))
    return True


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
