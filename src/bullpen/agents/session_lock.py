"""A lock for each session: two turns at once in one session would lose the answer of one of them."""

import os
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from bullpen.config import state_folder


class SessionLock:
    """Held while a turn runs in a session. The kernel frees it when this process dies."""

    def __init__(self, session_id: str) -> None:
        self._path = state_folder() / "sessions" / f"{session_id}.lock"
        self._file: int | None = None

    def hold(self) -> bool:
        """Take the lock, and return whether nobody else had it; OSError is raised where there cannot be one."""
        while True:
            file = self._opened()
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return False
            except OSError:
                os.close(file)
                raise
            if os.fstat(file).st_ino == _inode(self._path):
                self._file = file
                return True
            # The one who had it removed the file just now.
            os.close(file)

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, flags, 0o600)

    def release(self) -> None:
        """Let go of the lock; nothing if it is not held."""
        if self._file is not None:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._file)
            self._file = None


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None
