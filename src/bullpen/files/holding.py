"""Who uses what is kept: while anybody does, nothing of it is removed."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

NAME = "in-use"


def hold(home: Path) -> int | None:
    """Let nobody remove anything until the file that this returns is closed; None if that cannot be said here."""
    try:
        home.mkdir(mode=0o700, exist_ok=True)
        return _locked(home, fcntl.LOCK_SH)
    except OSError:
        return None


@contextlib.contextmanager
def alone(home: Path) -> Iterator[bool]:
    """Let nobody use what is kept, and say whether that is so: not if somebody does already."""
    try:
        handle = _locked(home, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.close(handle)


def _locked(home: Path, kind: int) -> int:
    handle = os.open(home / NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, kind)
    except OSError:
        os.close(handle)
        raise
    return handle
