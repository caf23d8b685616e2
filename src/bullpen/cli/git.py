"""git as the person uses it: in this folder, with their settings and what a hook was told of the index."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryFile

from bullpen.config import program_path
from bullpen.errors import BullpenError

MOST_BYTES = 64 * 1024 * 1024
"""Of what git prints. The rest is not read."""
LONGEST_REASON = 2_000


def git(*arguments: str) -> str:
    """Return what git prints, or raise BullpenError with what it said instead."""
    # What it warns of may be long, so nobody needs to read it meanwhile.
    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [_program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        except OSError as error:
            raise BullpenError(f"git cannot be run: {error.strerror}.") from error
        with process:
            printed = process.stdout.read(MOST_BYTES) if process.stdout else b""
            if len(printed) == MOST_BYTES:
                process.kill()
                return printed.decode(errors="replace")
        if process.returncode:
            errors.seek(0)
            said = errors.read(LONGEST_REASON).decode(errors="replace").strip().removeprefix("fatal: ")
            raise BullpenError(f"git says: {said or f'exit code {process.returncode}'}")
    return printed.decode(errors="replace")


def _program() -> str:
    """Return the path of git; never one in a folder that depends on where we are."""
    program = shutil.which("git", path=program_path())
    if program is None:
        raise BullpenError("git is not installed.")
    return program


def git_path(*arguments: str) -> Path:
    """Return a path that `git rev-parse` prints, absolute."""
    return Path(os.path.abspath(git("rev-parse", *arguments).rstrip("\n")))  # noqa: PTH100
