"""What holds for all tests: each has a time limit, and none depends on how busy the machine is.

A test that exceeds its limit fails with the stacks of all threads. If it then hangs in cleaning up, its process prints
the stacks and ends with all that it has started, and `make test` continues in another one.
"""

import asyncio
import contextlib
import faulthandler
import inspect
import os
import threading
from collections.abc import Generator

import psutil
import pytest
from hypothesis import HealthCheck, settings

# Scripted agents keep sessions where these say: never in those of the person who runs the tests.
for _variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "QWEN_HOME"):
    os.environ.pop(_variable, None)

# Before anything imports it.
pytest.register_assert_rewrite("bullpen.testing.store_contract")

CLEANING_UP_SECONDS = 60.0
LONGEST_STORY_SECONDS = 100
"""Of a test that is a coroutine."""

# Tests do not assert times, and each has a limit anyway.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_stderr = pytest.StashKey[int]()
_in_debugger = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the real stderr: while a test runs, its output is captured."""
    config.stash[_stderr] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_stderr])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process if a test hangs although its time is over."""
    marker = item.get_closest_marker("timeout")
    seconds = float(marker.args[0] if marker else item.config.getini("timeout"))
    watch = threading.Timer(seconds + CLEANING_UP_SECONDS, end_process, [item.config])
    watch.daemon = True
    watch.start()
    try:
        return (yield)
    finally:
        watch.cancel()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), LONGEST_STORY_SECONDS))
    return True


def pytest_enter_pdb(config: pytest.Config) -> None:
    config.stash[_in_debugger] = True


def end_process(config: pytest.Config) -> None:
    """Print the stacks of all threads, and end this process with all that it has started; not while debugging."""
    if config.stash.get(_in_debugger, False):
        return
    faulthandler.dump_traceback(config.stash[_stderr])
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    os._exit(1)
