"""The file itself: created private and in one step, and checked before SQLite opens it."""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from bullpen.errors import BullpenError, NotAStore, OutputExists, StoreDamaged, StoreFull, StoreReadOnly, StoreTooNew

FOLDER_MODE = 0o700
FILE_MODE = 0o600

# The database itself, and what SQLite may put beside it.
ENDINGS = ("", "-wal", "-shm", "-journal")

APPLICATION_ID = int.from_bytes(b"bpen", "big")

# Where SQLite locks a file that is open: how many bytes, and where. https://www.sqlite.org/lockingv3.html
ALL_LOCKS = (512, 0x40000000)
SHARED_LOCK = (510, 0x40000002)

# https://www.sqlite.org/fileformat.html#the_database_header
MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100


def create_file(path: Path, fill: Callable[[Path], None]) -> None:
    """Create a file and its folder. It is filled under another name, so that it appears whole or not at all."""
    make_folder_of(path)
    with draft_of(path) as draft:
        fill(draft)
        # If another process was faster, its file is as good as ours.
        with suppress(OutputExists):
            put(draft, path, overwrite=False)


def make_folder_of(path: Path) -> None:
    """Create the folder of a file, which only its user can read."""
    with _telling_errors(path):
        _make_folder(path.parent)


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Give a private file beside a path, which is removed afterwards with all that SQLite put beside it."""
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    with _telling_errors(path):
        try:
            _make_private_file(draft)
            yield draft
        finally:
            for ending in ENDINGS:
                draft.with_name(draft.name + ending).unlink(missing_ok=True)


def put(draft: Path, path: Path, *, overwrite: bool) -> None:
    """Give a draft its name, also after a power cut; raise OutputExists if there is such a file."""
    sync(draft)
    put_synced(draft, path, overwrite=overwrite)


def put_synced(draft: Path, path: Path, *, overwrite: bool) -> None:
    """Do the same with a draft that is on disk, and do not open it: closing it would give up locks that we have."""
    if overwrite:
        draft.replace(path)
    else:
        _link(draft, path)
    sync(path.parent)


def keep(path: Path, name: Path, file: BinaryIO | None = None) -> None:
    """Give a file a second name, or copy it where there are no links: from `file`, if it may not be opened again."""
    try:
        name.hardlink_to(path)
    except FileExistsError:
        raise
    except OSError:
        with ExitStack() as on_error, nullcontext(file) if file else path.open("rb") as source:
            on_error.callback(name.unlink, missing_ok=True)
            _make_private_file(name)
            with name.open("wb") as copy:
                source.seek(0)
                shutil.copyfileobj(source, copy)
            # Its time, too: it says whether the machine was started since.
            shutil.copystat(path, name)
            sync(name)
            on_error.pop_all()


@contextmanager
def _telling_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreFull(path) from error
        if isinstance(error, FileNotFoundError) and not path.parent.exists():
            hint = f"Create it first: mkdir -p {quote(str(path.parent))}"
            raise BullpenError(f"{path} cannot be written: there is no folder {path.parent}. {hint}") from error
        raise StoreReadOnly(path, f"cannot be created ({error.strerror})") from error


def _make_folder(folder: Path) -> None:
    if folder.exists():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    # Not in mkdir, where the umask could remove any permission.
    folder.chmod(FOLDER_MODE)
    # Otherwise a power cut could lose the folder and everything in it. Some parents cannot be opened.
    with suppress(PermissionError):
        sync(folder.parent)


def _make_private_file(path: Path) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    try:
        # The umask could have removed permissions. Some disks have none.
        with suppress(PermissionError):
            os.fchmod(handle, FILE_MODE)
    finally:
        os.close(handle)


def _link(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError as error:
        raise OutputExists(path) from error
    except OSError:
        # Some disks have no links.
        if os.path.lexists(path):
            raise OutputExists(path) from None
        draft.rename(path)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_file(path: Path, latest_version: int, *, has_log: bool) -> None:
    """Raise an error if this file is not a sound database. Only reads.

    With a log, part of the file's content may still be in the log.
    """
    header, size = _header(path)
    if not header.startswith(MAGIC):
        raise NotAStore(path, "is not a database" if size else "is empty")
    if len(header) < HEADER_BYTES:
        raise StoreDamaged(path, "it ends within its header")
    if _number(header, 68) != APPLICATION_ID:
        raise NotAStore(path, "is the database of another program")
    if _number(header, 60) > latest_version:
        raise StoreTooNew(path, _number(header, 60), latest_version)
    if reason := _wrong_header(header) or ("" if has_log else _wrong_size(header, size)):
        raise StoreDamaged(path, reason)


def is_kept(path: Path) -> bool:
    """Return whether a sound file is as a backup is: without a log, and such that it needs none."""
    beside = [path.with_name(path.name + ending) for ending in ENDINGS[1:]]
    return _header(path)[0][18:20] == b"\1\1" and not any(map(os.path.lexists, beside))


def is_locked(path: Path) -> bool:
    """Return whether another process lets nobody open this file. No connection of this process may be open."""
    try:
        with path.open("rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, *SHARED_LOCK)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EAGAIN)
    return False


def check_access(path: Path) -> None:
    """Raise an error if this file cannot be written, or nothing beside it."""
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreReadOnly(path, "or its folder is not writable")


def make_private(path: Path) -> None:
    """Remove other users' permissions; SQLite gives the files next to this one the same permissions."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(FILE_MODE)
    except OSError as error:
        raise StoreReadOnly(path, f"cannot be made private ({error.strerror})") from error


def log_of(path: Path) -> Path:
    """Return where the write-ahead log of a database is."""
    return path.with_name(path.name + "-wal")


def has_log(path: Path) -> bool:
    """Return whether the write-ahead log has content, from a crash or because the file is in use."""
    return fingerprint(log_of(path))[1] > 0


def fingerprint(path: Path) -> tuple[int, int]:
    """Return a file's time of change and size, which differ after every change."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def inode(path: Path) -> tuple[int, int] | None:
    """Return what identifies a file under any name."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _header(path: Path) -> tuple[bytes, int]:
    try:
        # Opening a pipe would wait for its other end.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except PermissionError as error:
        raise StoreReadOnly(path, "is not readable") from error
    except OSError as error:
        raise NotAStore(path, f"cannot be opened ({error.strerror})") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise NotAStore(path, "is not a file")
        return os.read(handle, HEADER_BYTES), status.st_size
    finally:
        os.close(handle)


def _wrong_header(header: bytes) -> str:
    """Return what is impossible in the header, or nothing."""
    page_size = int.from_bytes(header[16:18], "big")
    freelist = _number(header, 32), _number(header, 36)
    possible = (
        (page_size == 1 or (page_size >= 512 and page_size & (page_size - 1) == 0))
        and header[18] in (1, 2)
        and header[19] in (1, 2)
        and header[20:24] == b"\0\x40\x20\x20"
        and _number(header, 24) == _number(header, 92)
        and (freelist[0] == 0) == (freelist[1] == 0)
        and [_number(header, place) for place in (44, 52, 56, 64)] == [4, 0, 1, 0]
        and _number(header, 60) > 0
        and not any(header[72:92])
    )
    return "" if possible else "its header is not a valid SQLite header"


def _wrong_size(header: bytes, size: int) -> str:
    page_size = int.from_bytes(header[16:18], "big")
    expected = _number(header, 28) * (65536 if page_size == 1 else page_size)
    return "" if size == expected else f"it has {size:,} bytes instead of {expected:,}"


def _number(header: bytes, place: int) -> int:
    return int.from_bytes(header[place : place + 4], "big")
