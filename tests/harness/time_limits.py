"""Each test has a time limit, and one that exceeds it says where it hangs.

It fails with the stacks of all threads, and of all tasks if it is a coroutine. If it then hangs in cleaning up, its
process prints the stacks and ends with all that it has started, and `make test` continues in another one.
"""

import asyncio
import contextlib
import faulthandler
import inspect
import io
import math
import os
import threading
import time
from collections.abc import Awaitable, Generator

import psutil
import pytest

CLEANING_UP_SECONDS = 60.0
LOOK_SECONDS = 0.5
STORY_SECONDS = 100
"""Of a test that is a coroutine."""

_stderr = pytest.StashKey[int]()
_watch = pytest.StashKey["_Watch"]()
_in_debugger = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the real stderr: while a test runs, its output is captured."""
    config.stash[_stderr] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_stderr])


class _Watch(threading.Thread):
    """Ends the process if a test hangs although its time is over. One thread for all tests: starting one takes time."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(daemon=True)
        self.config = config
        self.deadline = math.inf

    def run(self) -> None:
        while time.monotonic() < self.deadline:
            time.sleep(LOOK_SECONDS)
        end_process(self.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    marker = item.get_closest_marker("timeout")
    seconds = float(marker.args[0] if marker else item.config.getini("timeout"))
    watch = item.config.stash.get(_watch, None)
    if watch is None:
        watch = item.config.stash[_watch] = _Watch(item.config)
        watch.start()
    watch.deadline = time.monotonic() + seconds + CLEANING_UP_SECONDS
    try:
        return (yield)
    finally:
        watch.deadline = math.inf


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(_limited(pyfuncitem, pyfuncitem.obj(**arguments)))
    return True


async def _limited(item: pytest.Item, story: Awaitable[None]) -> None:
    task = asyncio.ensure_future(story)
    await asyncio.wait([task], timeout=STORY_SECONDS)
    if not task.done():
        item.add_report_section("call", "tasks", _tasks())
        task.cancel()
        await asyncio.wait([task], timeout=CLEANING_UP_SECONDS)
        pytest.fail(f"It did not end within {STORY_SECONDS} seconds. Its tasks are below.", pytrace=False)
    task.result()


def _tasks() -> str:
    """Return where every task is."""
    text = io.StringIO()
    for task in asyncio.all_tasks():
        task.print_stack(file=text)
    return text.getvalue()


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
