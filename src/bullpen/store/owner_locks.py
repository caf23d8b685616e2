"""Locks of owners: a file next to the database for each, which the kernel unlocks when its process dies.

Unlike a process number, a lock means the same in every pid namespace, and needs no /proc. On some network file systems
it is not seen by other machines: those go by when the owner was last seen.
"""

import os
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from weakref import WeakSet

_all: "WeakSet[OwnerLocks]" = WeakSet()


class OwnerLocks:
    """The locks that one store holds for its owners. All methods may be called from any thread."""

    def __init__(self, database: Path) -> None:
        # It may be opened by several names.
        self._database = database.resolve()
        self._held: dict[str, int] = {}
        _all.add(self)

    def hold(self, token: str) -> bool:
        """Lock a new file for an owner, and return whether that was possible."""
        if token in self._held:
            return True
        try:
            file = os.open(self._file(token), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except OSError:
            # Without locks here, the file would say that we are dead.
            os.close(file)
            self.remove(token)
            return False
        self._held[token] = file
        return True

    def is_held(self, token: str) -> bool | None:
        """Return whether some process holds an owner's lock; None if there is no such file."""
        if token in self._held:
            return True
        try:
            file = os.open(self._file(token), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            flock(file, LOCK_SH | LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
        finally:
            os.close(file)
        return False

    def let_go(self, token: str) -> None:
        """Unlock an owner's file. As long as it is still there, it says that the owner is dead."""
        file = self._held.pop(token, None)
        if file is not None:
            os.close(file)

    def remove(self, token: str) -> None:
        """Remove the file of a former owner. Its token never comes back."""
        with suppress(OSError):
            self._file(token).unlink()
        self.let_go(token)

    def close(self) -> None:
        """Let go of all; also in a forked child, for the lock would outlive the owner as long as a copy is open."""
        for token in list(self._held):
            self.let_go(token)

    def _file(self, token: str) -> Path:
        # In a damaged database, a token may be anything.
        name = token.encode(errors="surrogatepass").hex()
        return self._database.with_name(f"{self._database.name}-owner-{name}")


def _after_fork_in_child() -> None:
    for locks in list(_all):
        locks.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
