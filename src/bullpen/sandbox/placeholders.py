"""Empty folders that are put where folders with settings could be made, for as long as a held program runs there.

Several may run in one folder, also of several bullpens: the last one to leave removes them, and after a crash the next
last one. They are only ever removed while they are empty.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def placed(folder: str, paths: Sequence[str], kept_in: Path) -> Iterator[tuple[str, ...]]:
    """Yield those of the paths that are empty folders now; `kept_in` is where it is noted which of them are ours."""
    if not paths:
        yield ()
        return
    kept_in.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = kept_in / hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    handle = _shared(note)
    try:
        made = tuple(path for path in paths if _make(handle, path))
        yield made
    finally:
        _leave(handle, note)
        os.close(handle)


def _shared(note: Path) -> int:
    """Open a note that nobody removes meanwhile."""
    while True:
        handle = os.open(note, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if note.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)


def _make(handle: int, path: str) -> bool:
    # Noted before it is made: a crash in between leaves nothing that is not known.
    os.write(handle, os.fsencode(path) + b"\0")
    try:
        Path(path).mkdir()
    except FileExistsError:
        return not os.path.islink(path) and os.path.isdir(path) and not os.listdir(path)  # noqa: PTH112, PTH114, PTH208
    except OSError:
        return False
    return True


def _leave(handle: int, note: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    with suppress(OSError):
        content = os.pread(handle, os.fstat(handle).st_size, 0)
        for path in set(content.split(b"\0")) - {b""}:
            with suppress(OSError):
                os.rmdir(path)  # noqa: PTH106
        note.unlink()
