"""Tests about tests: a file of them, run with the harness in a process of its own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_tests(
    source: str, folder: Path, *options: str, program: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run tests of this source, behind a program that starts them, and return what that printed."""
    file = folder / "test_nested.py"
    file.write_text(source, encoding="utf-8")
    command = [sys.executable, *program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest", *options]
    settings = ["-c", "pyproject.toml", "--rootdir", str(folder)]
    return subprocess.run([*command, *settings, str(file)], cwd=ROOT, check=False, capture_output=True, text=True)
