"""What a path in a workspace is now; symbolic links are never followed, and nothing outside is looked at."""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bullpen.file_changes import FileState

CHUNK_BYTES = 1024 * 1024
FOLDER: Final = "folder"
"""What is at a path if it is a folder."""
Present = FileState | None
"""None: nothing is there, or something that we do not keep: a folder, a socket."""
# What means that a path does not lead anywhere: a part of it is missing, a file, or a symbolic link.
NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


class Folder:
    """A root, opened once, so that it stays the same folder while we work in it."""

    def __init__(self, root: Path, *, is_sha256: bool = False) -> None:
        self.is_sha256 = is_sha256
        self.handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)

    @contextlib.contextmanager
    def parent(self, path: bytes, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        """Open the folder that a path is in, and give its last part; raises OSError, also if a link is on the way."""
        *folders, name = parts_of(path)
        handle = os.dup(self.handle)
        try:
            for folder in folders:
                below = _opened(handle, folder, make=make)
                os.close(handle)
                handle = below
            yield handle, name
        finally:
            os.close(handle)

    def status(self, path: bytes) -> os.stat_result | None:
        """Return the status of what is at a path; None if nothing is."""
        try:
            with self.parent(path) as (handle, name):
                return os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError as error:
            if error.errno in NOWHERE:
                return None
            raise

    def state(self, path: bytes) -> Present:
        """Return the state of the file at a path; raises OSError if it cannot be read."""
        status = self.status(path)
        if status is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return None
        with self.parent(path) as (handle, name):
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(name, dir_fd=handle)
                return FileState(blob=self._hashed(len(target), iter((target,))), mode="120000")
            mode = "100755" if status.st_mode & stat.S_IXUSR else "100644"
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handle)
            with os.fdopen(opened, "rb") as file:
                length = os.fstat(file.fileno()).st_size
                chunks = iter(lambda: file.read(CHUNK_BYTES), b"")
                return FileState(blob=self._hashed(length, chunks), mode=mode)

    def inside(self, path: bytes) -> Iterator[bytes]:
        """Yield the path of everything in a folder that is not a folder."""
        waiting = [path]
        while waiting:
            folder = waiting.pop()
            with self.parent(folder) as (handle, name):
                opened = _opened(handle, name)
            try:
                with os.scandir(opened) as entries:
                    for entry in entries:
                        below = folder + b"/" + os.fsencode(entry.name)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(below)
                        else:
                            yield below
            finally:
                os.close(opened)

    def _hashed(self, length: int, chunks: Iterator[bytes]) -> str:
        """Return the id that git gives contents."""
        hasher = hashlib.sha256() if self.is_sha256 else hashlib.sha1(usedforsecurity=False)
        hasher.update(b"blob %d\0" % length)
        for chunk in chunks:
            hasher.update(chunk)
        return hasher.hexdigest()


def parts_of(path: bytes) -> list[bytes]:
    """Return the parts of a path; raises OSError for one that leads elsewhere, or into somebody's git folder."""
    parts = path.split(b"/")
    # Some file systems take upper and lower case for the same, and git refuses .GIT everywhere.
    if b"\0" in path or not {b"", b".", b"..", b".git"}.isdisjoint(path.lower().split(b"/")):
        raise PermissionError(errno.EPERM, "it is not a path that may be written", os.fsdecode(path))
    return parts


def _opened(handle: int, name: bytes, *, make: bool = False) -> int:
    """Open a folder in an open folder."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=handle)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
