"""A small JSON file of ours that several processes may change, each time as a whole."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bullpen.errors import BullpenError

FOLDER_MODE = 0o700
FILE_MODE = 0o600


class KeptFile:
    """One of them. Only its owner can read it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Any:
        """Return its content, or raise OSError, ValueError or RecursionError."""
        return json.loads(self._path.read_bytes())

    def change(self, changed: Callable[[Any], Any]) -> None:
        """Replace its content, or raise BullpenError. `changed` gets what it is now: None, if there is nothing."""
        try:
            _make_folder(self._path.parent)
            with self._locked():
                try:
                    content = self.read()
                except (FileNotFoundError, ValueError, RecursionError):
                    content = None
                self._replace(changed(content))
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise BullpenError(f"{self._path} {reason}. Fix that, or set BULLPEN_HOME to another folder.") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing until we have, or one would lose the other's change."""
        handle = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_CREAT | os.O_RDWR, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _replace(self, content: Any) -> None:
        draft = self._path.with_name(f".{self._path.name}.{os.urandom(8).hex()}.new")
        try:
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                os.fchmod(handle, FILE_MODE)
                json.dump(content, file, indent=1)
                file.flush()
                os.fsync(handle)
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Not in mkdir, where the umask would apply.
        folder.chmod(FOLDER_MODE)
