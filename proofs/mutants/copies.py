"""A copy of the project, so that nobody else sees the mistakes, and pytest in it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proofs.mutants.mistakes import Mistake

FOLDERS = ("src", "tests", "proofs", "docs", "benchmarks", "examples", "deploy")
SOURCES = Path("src/bullpen")


def copied(tree: Path, place: Path) -> Path:
    """Copy what the tests need."""
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules")
    for folder in FOLDERS:
        if (tree / folder).exists():
            shutil.copytree(tree / folder, place / folder, ignore=ignore)
    for file in tree.glob("*.*"):
        if file.is_file():
            shutil.copy(file, place)
    return place


@contextmanager
def mistaken(place: Path, mistake: Mistake) -> Iterator[None]:
    """Have a mistake in a copy meanwhile."""
    file = place / SOURCES / mistake.module
    source = file.read_text()
    try:
        _write(file, mistake.applied(source))
        yield
    finally:
        _write(file, source)


def _write(file: Path, source: str) -> None:
    file.write_text(source)
    # It may have the size and, to the second, the time of what is compiled.
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)


def run_tests(
    place: Path, options: Sequence[str], seconds: float, python: str = sys.executable
) -> subprocess.CompletedProcess[str] | None:
    """Run pytest in a copy, up to the first failure; None if it took too long, and was ended with all it had begun."""
    # What is compiled is kept in the copy: otherwise every scripted agent would compile all of it again.
    environment = {**os.environ, "PYTHONPATH": f"{place / 'src'}{os.pathsep}{place}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=place, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as running:
        try:
            out, errors = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
            return None
    return subprocess.CompletedProcess(command, running.returncode, out, errors)
