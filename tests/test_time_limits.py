"""A test that hangs fails within its time limit, and the tests after it run."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent

HANGING = """
import subprocess, time
import pytest
from tests import conftest

conftest.CLEANING_UP_SECONDS = 1

@pytest.mark.timeout(1)
def test_that_hangs():
    {body}

def test_after_it():
    pass
"""
HANGS = "time.sleep(1000)"
HANGS_WITH_A_CHILD = "with subprocess.Popen(['sleep', '1000'], cwd={!r}): time.sleep(1000)"


def tried(body: str, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    file = folder / "test_hanging.py"
    file.write_text(HANGING.format(body=body), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", *options]
    settings = ["-c", "pyproject.toml", "--rootdir", str(folder)]
    return subprocess.run([*command, *settings, str(file)], cwd=ROOT, check=False, capture_output=True, text=True)


def test_a_test_that_hangs_fails(tmp_path: Path) -> None:
    done = tried(HANGS, tmp_path)

    assert "1 failed, 1 passed" in done.stdout
    assert "Timeout (>1.0s)" in done.stdout
    assert HANGS in done.stdout


def test_a_test_that_hangs_in_cleaning_up_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    done = tried(HANGS_WITH_A_CHILD.format(str(tmp_path)), tmp_path, "-n", "1")

    assert "1 failed, 1 passed" in done.stdout
    assert "crashed while running" in done.stdout
    assert "in test_that_hangs" in done.stderr
    assert [process.pid for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(tmp_path)] == []


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("timeout")) > 0
