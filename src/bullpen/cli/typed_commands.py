"""Commands that people are told to type, as they work here: this program, and the database that is meant."""

import shlex
import sys
from pathlib import Path
from shutil import which

PROGRAMS = ("bullpen", "bullpen-chat")
"""The same by two names: `uvx` runs the one that is named as the package."""


def to_type(words: str, db: Path | None = None) -> str:
    """Return a command with everything that it needs."""
    return f"{_program()} {words}" + ("" if db is None else f" --db {shlex.quote(str(db))}")


def _program() -> str:
    """Return the program's name, or where it is if a shell would not find it."""
    called = sys.argv[0]
    name = Path(called).name
    if name not in PROGRAMS:
        return PROGRAMS[0]
    return shlex.quote(called) if which(name) is None else name
