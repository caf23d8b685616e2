"""A home folder with one conversation in it, and a clock that shows UTC."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a home without conversations, and return where their file would be."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir(tmp_path)
    time.tzset()
    yield tmp_path / "home" / "conversations.db"
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def database(empty_home: Path) -> Path:
    """Give a home with the example conversation, and return its file."""
    with SqliteStore(empty_home) as store:
        write_example(store)
    return empty_home
