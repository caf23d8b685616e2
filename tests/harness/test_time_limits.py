"""A test that hangs fails within its time limit, and the tests after it run."""

from pathlib import Path

import psutil
import pytest
from tests.harness.nested import run_tests

HANGING = """
import subprocess, time
import pytest
from tests.harness import time_limits

time_limits.CLEANING_UP_SECONDS = 1

@pytest.mark.timeout(1)
def test_that_hangs():
    {body}

def test_after_it():
    pass
"""
HANGS = "time.sleep(1000)"
HANGS_WITH_A_CHILD = "with subprocess.Popen(['sleep', '1000'], cwd={!r}): time.sleep(1000)"


def test_a_test_that_hangs_fails(tmp_path: Path) -> None:
    done = run_tests(HANGING.format(body=HANGS), tmp_path)

    assert "1 failed, 1 passed" in done.stdout
    assert "Timeout (>1.0s)" in done.stdout
    assert HANGS in done.stdout


def test_a_test_that_hangs_in_cleaning_up_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    body = HANGS_WITH_A_CHILD.format(str(tmp_path))
    done = run_tests(HANGING.format(body=body), tmp_path, "-n", "1")

    assert "1 failed, 1 passed" in done.stdout
    assert "crashed while running" in done.stdout
    assert "in test_that_hangs" in done.stderr
    assert [process.pid for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(tmp_path)] == []


STORY = """
import asyncio
from tests.harness import time_limits

time_limits.STORY_SECONDS = 1

async def waits_for_nobody():
    await asyncio.Event().wait()

async def test_that_hangs():
    await waits_for_nobody()
"""


def test_a_coroutine_that_hangs_says_where(tmp_path: Path) -> None:
    done = run_tests(STORY, tmp_path)

    assert "It did not end within 1 seconds" in done.stdout
    assert "await waits_for_nobody()" in done.stdout


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("timeout")) > 0
