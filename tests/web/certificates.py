"""The certificates of the world: each client would read them all again, though it only talks with this machine."""

from functools import cache

import pytest
from httpx._config import create_ssl_context

_read_once = cache(create_ssl_context)


@pytest.fixture(autouse=True)
def certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all clients share what they read."""
    monkeypatch.setattr("httpx._transports.default.create_ssl_context", _read_once)
