"""SessionFile: a file that keeps who has access, for several processes at once."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from bullpen.exchange.files import write_private_file
from bullpen.exchange.formatting import Writable

FILE_MODE = 0o600


class SessionFile:
    """One file. It is read again only if it is another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version: tuple[int, ...] = ()

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> bytes | None:
        """Return what it holds, if that is not what was read or written last."""
        with contextlib.suppress(OSError):
            version = _version_of(self._path)
            if version != self._version:
                data = self._path.read_bytes()
                self._version = version
                return data
        return None

    def change(self, change: Callable[[bytes], bytes]) -> None:
        """Replace what it holds, or raise OSError."""
        with self._locked():
            # Two changes can have the same time.
            self._version = ()
            changed = change(self.read() or b"")

            def write(file: Writable) -> None:
                file.write(changed.decode())

            write_private_file(self._path, write, overwrite=True)
            self._version = _version_of(self._path)

    async def catch_up(self) -> bool:
        """Do nothing: it is looked at whenever it is read."""
        return False

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other servers from writing until we have, or one would lose the other's change."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_CREAT | os.O_RDWR, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _version_of(file: Path) -> tuple[int, ...]:
    """Return what tells a file from an earlier one in its place."""
    found = file.stat()
    return found.st_mtime_ns, found.st_ino, found.st_size


def sessions_beside(database: Path) -> Path:
    """Return the file for the sessions of a database."""
    return database.with_name(f"{database.name}.sessions")
