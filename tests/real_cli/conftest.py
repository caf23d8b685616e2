"""The genuine CLIs, each pointed at a scripted model on loopback, in a home of its own."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


def _beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


install, isolation = _beside("install"), _beside("isolation")


@pytest.fixture(scope="module", autouse=True)
def genuine_clis() -> Iterator[None]:
    """Put the genuine CLIs first on the PATH, in a network without a way out."""
    if not install.is_installed():
        pytest.skip("THE GENUINE AGENT CLIS ARE NOT INSTALLED: run `make test`, or python tests/real_cli/install.py")
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{install.binaries()}{os.pathsep}{path}"
    with isolation.loopback_only():
        yield
    os.environ["PATH"] = path
