"""A real browser: the system's Chromium, never one that is downloaded."""

import importlib.util
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from playwright.async_api import expect
from tests.web.browser.stage import STAGE, OpenBrowser


def _beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


install = _beside("install")

# Other work on the machine may be heavy; nothing here waits longer than it must.
expect.set_options(timeout=30_000)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a server writes goes into the test's own folder."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def stage_is_left() -> Iterator[None]:
    """Close the browser in the end."""
    yield
    STAGE.end()


@pytest.fixture
def open_browser(stage_is_left: None) -> OpenBrowser:
    path = install.browser()
    if path is None:
        pytest.skip("THERE IS NO CHROMIUM ON THIS SYSTEM: install the package chromium")
    return partial(STAGE.opened, path)


@pytest.fixture(scope="session")
def axe() -> str:
    path: Path = install.axe()
    if not path.exists():
        pytest.skip("AXE-CORE IS NOT INSTALLED: run `make test-all`, or python -m tests.web.browser.install")
    return path.read_text(encoding="utf-8")
