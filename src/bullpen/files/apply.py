"""Files put into other states: checked first, then each replaced at once; done again, it completes what was begun."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from bullpen.errors import FilesDiffer, FilesFailed, FilesNotKept
from bullpen.file_changes import FileChange, FileState
from bullpen.files.git import Git, GitFailed
from bullpen.files.keep import missing_objects
from bullpen.files.paths import path_before, path_of, shown
from bullpen.files.present import NOWHERE, Folder
from bullpen.files.repository import Repository

CHUNK_BYTES = 1024 * 1024
LINK, EXECUTABLE = "120000", "100755"


class Step(Struct, frozen=True):
    """One path, and from which state into which it goes."""

    path: bytes
    old: FileState | None
    new: FileState | None


def steps_of(changes: Iterable[FileChange], *, back: bool) -> list[Step]:
    """Return what changes mean for each path; raises ValueError if contents of one were not kept."""
    found: list[Step] = []
    for change in changes:
        if (change.old is None and change.kind != "added") or (change.new is None and change.kind != "deleted"):
            raise ValueError(change.path)
        path, before = path_of(change), path_before(change)
        if path == before:
            found.append(Step(path, change.old, change.new))
        else:
            found += [Step(before, change.old, None), Step(path, None, change.new)]
    return [Step(step.path, step.new, step.old) for step in found] if back else found


def differing(repository: Repository, changes: Sequence[FileChange], *, new: bool) -> tuple[str, ...]:
    """Return the paths that are not now as they were before changes, or after them; raises FilesNotKept, OSError."""
    with Folder(repository.place.root, is_sha256=repository.place.is_sha256) as folder:
        steps = _steps(repository.place.root, changes, back=not new)
        return tuple(shown(step.path)[0] for step in steps if folder.state(step.path) != step.new)


def apply(repository: Repository, changes: Sequence[FileChange], *, back: bool) -> None:
    """Put files into their new states, or back to their old ones."""
    root = repository.place.root
    steps = _steps(root, changes, back=back)
    try:
        with Folder(root, is_sha256=repository.place.is_sha256) as folder:
            to_do = _checked(root, folder, steps)
            git = repository.git()
            _check_contents(root, git, to_do)
            _forget_unfinished(folder, steps)
            for step in to_do:
                if step.new is None:
                    _remove(folder, step.path)
            _write_all(folder, git, to_do)
            for path in sorted((step.path for step in steps if step.new is None), reverse=True):
                _remove_empty_folders(folder, path)
            os.fsync(folder.handle)
    except (OSError, GitFailed) as error:
        raise FilesFailed(root, _reason(error)) from error


def _steps(root: Path, changes: Sequence[FileChange], *, back: bool) -> list[Step]:
    try:
        return steps_of(changes, back=back)
    except ValueError as error:
        raise FilesNotKept(root, f"only names and sizes were recorded, as of {error.args[0]!r}") from error


def _checked(root: Path, folder: Folder, steps: Sequence[Step]) -> list[Step]:
    """Return what is still to be done; raises FilesDiffer."""
    to_do, wrong = [], []
    emptied = {step.path for step in steps if step.new is None}
    for step in steps:
        now = folder.state(step.path)
        if now == step.new:
            continue
        to_do.append(step)
        if now != step.old or _is_in_the_way(folder, step, emptied):
            wrong.append(shown(step.path)[0])
    if wrong:
        raise FilesDiffer(root, wrong)
    return to_do


def _is_in_the_way(folder: Folder, step: Step, emptied: set[bytes]) -> bool:
    """Return whether something else than our files is where a file is to be."""
    if step.new is None:
        return False
    parts = step.path.split(b"/")
    for count in range(1, len(parts)):
        above = b"/".join(parts[:count])
        status = folder.status(above)
        if status is None:
            return False
        if not stat.S_ISDIR(status.st_mode):
            return above not in emptied
    status = folder.status(step.path)
    if status is None or stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        return False
    try:
        return not stat.S_ISDIR(status.st_mode) or any(path not in emptied for path in folder.inside(step.path))
    except PermissionError:
        # Somebody's repository is in it, and is not ours to remove.
        return True


def _check_contents(root: Path, git: Git, steps: Sequence[Step]) -> None:
    wanted = {step.new.blob: step.path for step in steps if step.new is not None}
    missing = missing_objects(git, set(wanted)) if wanted else set()
    if missing:
        names = ", ".join(sorted(shown(wanted[blob])[0] for blob in missing)[:3])
        raise FilesNotKept(root, f"what was in {names} is not kept any more")


def _forget_unfinished(folder: Folder, steps: Sequence[Step]) -> None:
    """Remove what was half written when an earlier try was killed."""
    for step in steps:
        with _nowhere_is_fine(), folder.parent(step.path) as (handle, _):
            os.unlink(_temporary(step.path), dir_fd=handle)


def _remove(folder: Folder, path: bytes) -> None:
    with _nowhere_is_fine(), folder.parent(path) as (handle, name):
        os.unlink(name, dir_fd=handle)
        os.fsync(handle)


def _remove_empty_folders(folder: Folder, path: bytes) -> None:
    """Remove the folders that a file was in, as far as nothing else is in them."""
    parts = path.split(b"/")
    for count in range(len(parts) - 1, 0, -1):
        try:
            with folder.parent(b"/".join(parts[:count])) as (handle, name):
                os.rmdir(name, dir_fd=handle)
        except OSError:
            return


def _write_all(folder: Folder, git: Git, steps: Sequence[Step]) -> None:
    wanted = [(step.path, step.new) for step in steps if step.new is not None]
    given = "".join(f"{state.blob}\n" for _, state in wanted).encode()
    with git.started("cat-file", "--batch=%(objectsize)", "--buffer", given=given) as contents:
        for path, state in wanted:
            length = int(contents.readline())
            _write(folder, path, state, contents, length)
            contents.read(1)


def _write(folder: Folder, path: bytes, state: FileState, contents: IO[bytes], length: int) -> None:
    _clear_folder(folder, path)
    with folder.parent(path, make=True) as (handle, name):
        new = _temporary(path)
        if state.mode == LINK:
            os.symlink(contents.read(length), new, dir_fd=handle)
        else:
            permissions = 0o777 if state.mode == EXECUTABLE else 0o666
            opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, permissions, dir_fd=handle)
            with os.fdopen(opened, "wb") as file:
                _copy(contents, file, length)
                _keep_permissions(file, handle, name, is_executable=state.mode == EXECUTABLE)
                file.flush()
                os.fsync(file.fileno())
        os.rename(new, name, src_dir_fd=handle, dst_dir_fd=handle)
        os.fsync(handle)


def _copy(contents: IO[bytes], file: IO[bytes], length: int) -> None:
    while length:
        chunk = contents.read(min(length, CHUNK_BYTES))
        if not chunk:
            raise GitFailed("git cat-file: its output ended too early")
        file.write(chunk)
        length -= len(chunk)


def _keep_permissions(file: IO[bytes], handle: int, name: bytes, *, is_executable: bool) -> None:
    """Give a new file the permissions of the one it replaces, but for the right to run it."""
    with _nowhere_is_fine():
        before = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISREG(before.st_mode):
            os.fchmod(file.fileno(), _permissions(before.st_mode, is_executable=is_executable))


def _permissions(before: int, *, is_executable: bool) -> int:
    """Return what the file had, with the right to run it for all who may read it, or for nobody."""
    mode = stat.S_IMODE(before) & 0o777
    if not is_executable:
        return mode & ~0o111
    return mode if mode & stat.S_IXUSR else mode | (mode & 0o444) >> 2


def _clear_folder(folder: Folder, path: bytes) -> None:
    """Remove the empty folders where a file is to be."""
    status = folder.status(path)
    if status is None or not stat.S_ISDIR(status.st_mode):
        return
    with folder.parent(path) as (handle, name):
        for _, folders, _, below in os.fwalk(name, topdown=False, dir_fd=handle, follow_symlinks=False):
            for one in folders:
                os.rmdir(one, dir_fd=below)
        os.rmdir(name, dir_fd=handle)


def _temporary(path: bytes) -> bytes:
    """Return the name beside a file under which it is written; always the same, so that it is found after a crash."""
    return b".bullpen-" + hashlib.sha256(path).hexdigest()[:24].encode() + b".tmp"


@contextlib.contextmanager
def _nowhere_is_fine() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NOWHERE:
            raise


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        name = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, (str, bytes)) else ""
        return f"{os.strerror(error.errno) if error.errno else error}{name}"
    return str(error)
