"""Two tiers: what is ours, for `make test`; and what needs a program that is not ours, for `make test-all`."""

import os
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOREIGN_FOLDERS = ("tests/agents/real_cli", "tests/web/browser", "tests/store/postgres", "proofs")
FOREIGN_FIXTURES = {"template", "own_server", "tls"}
"""Whoever asks for one of these needs PostgreSQL or OpenSSL."""
LEFT_OUT = "Left out: the genuine CLIs, browsers, PostgreSQL, deploy files and torture. Run them with: make test-all"

_ours = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ours] = "not foreign" in config.option.markexpr


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what is left out: it may need packages that are not installed."""
    return True if config.stash[_ours] and _is_foreign(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a foreign program."""
    for item in items:
        names = set(item.fixturenames) if isinstance(item, pytest.Function) else set()
        needs = any("PostgreSQL" in mark.kwargs.get("reason", "") for mark in item.iter_markers("skipif"))
        if _is_foreign(item.path) or names & FOREIGN_FIXTURES or needs:
            item.add_marker("foreign")


def pytest_xdist_auto_num_workers() -> int:
    """Run twice as many tests at once as there are cores: most of them wait for a process or for the disk."""
    return 2 * (os.cpu_count() or 1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[_ours]:
        terminalreporter.write_line(LEFT_OUT)


@cache
def _is_foreign(path: Path) -> bool:
    return any(path.is_relative_to(ROOT / folder) for folder in FOREIGN_FOLDERS)
