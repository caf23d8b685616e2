"""Turns that are followed, in a folder of their own, with nothing of the environment's own telemetry."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conversation.stage import Stage
from tests.telemetry.collector import Collector, collecting


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BULLPEN_TELEMETRY", "1")
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that spans are sent to soon."""
    with collecting() as listening:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", listening.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        # Longer than any test: what waits for an answer hangs.
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
        yield listening


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Kim, and `a`, which uses a tool and hands over to `b`."""
    stage = Stage(tmp_path)
    stage.put_claude_on_the_path(monkeypatch)
    stage.person("kim")
    tool = {"tool": {"name": "Bash", "input": {"command": "ls papers"}, "output": "plums.txt"}}
    usage = {"usage": {"input": 200, "output": 34, "cached": 1000, "cost": 0.5}}
    stage.agent("a", [tool, usage, {"say": "Apricots. [NEXT: b]"}], agent="claude", model="opus")
    stage.agent("b", "Cherries.")
    return stage
