"""A test leaves no process behind."""

import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest
from tests.harness.isolation import RUN

PATIENCE_SECONDS = 20.0
"""For processes that are about to end."""
_STAYS = (b"guardian of", b"multiprocessing.resource_tracker", b"multiprocessing.forkserver", b"bullpen-postgres-")
"""In the command line of what a test's process keeps for the next test: a guardian that is ready, Python's own, and the
PostgreSQL that tests share."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose processes outlive it, and end them."""
    result = yield
    if item.get_closest_marker("foreign"):
        return result
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := list(children())) and time.monotonic() < deadline:
        time.sleep(0.005)
    if left:
        lines = [end(process) for process in left]
        pytest.fail("It left processes behind: " + "; ".join(lines), pytrace=False)
    return result


def children() -> Iterator[int]:
    """Yield the processes that this one has started and that still run."""
    for task in Path("/proc/self/task").iterdir() if Path("/proc/self/task").exists() else ():
        try:
            pids = (task / "children").read_text().split()
        except OSError:
            continue
        yield from (int(pid) for pid in pids if _runs(int(pid)))


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    # The command is empty for a moment while a program is loaded.
    return state not in b"ZX" and not any(word in command for word in _STAYS)


def end(pid: int) -> str:
    """End a process that should not be there, and return what it was."""
    try:
        process = psutil.Process(pid)
        command = " ".join(process.cmdline())
        process.kill()
    except psutil.Error:
        return str(pid)
    return f"{pid} {command[:200]}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look for processes that no longer belong to anybody: they inherit the name of the run."""
    if hasattr(session.config, "workerinput"):
        return
    run, left = os.environ[RUN], []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            parents = {parent.pid for parent in process.parents()}
        except psutil.Error:
            continue
        if environment.get(RUN) == run and process.pid != os.getpid() and os.getpid() not in parents:
            left.append(f"{environment.get('PYTEST_CURRENT_TEST', '?')}: {end(process.pid)}")
    if left:
        print("\nProcesses that were left behind:", *left, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
