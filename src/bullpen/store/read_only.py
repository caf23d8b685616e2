"""A file that cannot be written, opened to be read: its medium or folder is read-only, or its disk is full.

SQLite needs an index (-shm) beside a file with a write-ahead log. Where there can be none, a file without a log is
opened as one that nobody changes, and a file with a log is copied to where there can be one: without its log, the
newest messages would be missing.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from sqlite3 import Connection
from tempfile import TemporaryDirectory

from bullpen.errors import StoreBusy
from bullpen.store import files, schema

# How many times to copy a file that others change meanwhile.
TRIES = 10

Connect = Callable[[Path, str], Connection]


class Reader:
    """A connection that only reads, and what must be given back after it."""

    def __init__(self, path: Path, connect: Connect) -> None:
        self._path = path
        self._connect = connect
        self._after = ExitStack()
        self._seen: object = None
        """How the files were when they were opened or copied, if SQLite does not lock them."""
        self.is_copy = False
        with ExitStack() as on_error:
            on_error.callback(self.close)
            self.connection = self._open()
            on_error.pop_all()

    def close(self) -> None:
        """Close the connection, and remove the copy if there is one."""
        self._after.close()

    def has_changed(self) -> bool:
        """Return whether others changed a file that was opened as one that nobody changes, or was copied."""
        return self._seen is not None and self._seen != _state(self._path)

    def _open(self) -> Connection:
        if not files.has_log(self._path):
            self._seen = _state(self._path)
            connection = self._current("mode=ro&immutable=1")
        else:
            connection = self._current("mode=ro")
        return connection or self._copy()

    def _current(self, mode: str) -> Connection | None:
        """Return a connection to the file itself; None if SQLite cannot read it there, or its format is an old one."""
        connection = self._connect(self._path, mode)
        with suppress(sqlite3.OperationalError):
            if schema.version_of(connection) >= schema.latest_version():
                # What is only needed for a moment would need room on a disk that may be full.
                connection.execute("PRAGMA temp_store = MEMORY")
                self._after.enter_context(closing(connection))
                return connection
        connection.close()
        return None

    def _copy(self) -> Connection:
        """Return a connection to a private copy."""
        self._seen, self.is_copy = None, True
        folder = Path(self._after.enter_context(TemporaryDirectory(prefix="bullpen-")))
        copy = folder / self._path.name
        for _ in range(TRIES):
            before = _state(self._path)
            for ending in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{self._path}{ending}", f"{copy}{ending}")
            if _state(self._path) == before:
                self._seen = before
                return self._after.enter_context(closing(self._connect(copy, "mode=rw")))
        raise StoreBusy(self._path)


def _state(path: Path) -> tuple[object, ...]:
    return files.fingerprint(path), files.inode(path), files.fingerprint(files.log_of(path))[1]
