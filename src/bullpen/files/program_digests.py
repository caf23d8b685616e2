"""Files that make programs run and are in no snapshot: hooks and settings of git, and what git ignores."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from bullpen.files.paths import shown
from bullpen.files.place import Place
from bullpen.program_files import is_noticed, is_program_name

MOST_FILES = 1000
MOST_READ = 256 * 1024
"""Bytes; of a larger file, its size and times count."""
OF_GIT = ("config", "config.worktree", "hooks", "info/attributes")
# Every branch that follows another one adds these. A remote with colons could be a command.
_BRANCHES = re.compile(
    rb'^(\[branch "[^"\n]*"\]|\s+(remote = [\w./-]+|merge = refs/heads/[\w./-]+))\r?\n', re.MULTILINE
)


def program_digests(place: Place, folders: Iterable[str] = (), not_looked_at: tuple[str, ...] = ()) -> dict[str, str]:
    """Return a digest of each such file at the top of a root and in its git folder, by its path.

    Also of those in folders below the root, and in the folders that these are in. All of them are in it themselves,
    with a slash at the end, so that it is never empty. What begins as one of
    `not_looked_at` does is left out: our own files.
    """
    root = os.fsencode(place.root)
    below = {str(above) for folder in folders for above in (PurePath(folder), *PurePath(folder).parents)} - {"."}
    digests = dict.fromkeys((f"{folder}/" for folder in (".", *sorted(below))), "folder")
    for path in _paths(place, below):
        if len(digests) >= MOST_FILES:
            break
        path = os.path.normpath(path)
        name = shown(os.path.relpath(path, root) if path.startswith(root + b"/") else path)[0]
        if name.startswith(not_looked_at):
            continue
        digests[name] = _digest(path)
    return digests


def looked_at(digests: Iterable[str]) -> tuple[str, ...]:
    """Return the folders below the root that digests are of."""
    return tuple(path.rstrip("/") for path in digests if path.endswith("/"))


def _paths(place: Place, below: Iterable[str]) -> Iterator[bytes]:
    for git in {place.git_dir, place.common_dir} - {None}:
        yield from _of_git(os.fsencode(git or ""))
    for folder in (place.root, *(place.root / one for one in sorted(below))):
        yield from _top(os.fsencode(folder), os.fsencode(place.root))


def _top(folder: bytes, root: bytes) -> Iterator[bytes]:
    """Yield such files of a folder in the root; through a link, what is elsewhere is not looked at."""
    if os.path.realpath(folder) != folder or not f"{os.fsdecode(folder)}/".startswith(f"{os.fsdecode(root)}/"):
        return
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - of many, only names
    except OSError:
        return
    for name in names:
        path, text = os.path.join(folder, name), os.fsdecode(name)  # noqa: PTH118
        if text == ".git":
            yield from _of_git(path)
        elif is_program_name(text) and is_noticed(text):
            yield from _below(path)


def _of_git(folder: bytes) -> Iterator[bytes]:
    for part in OF_GIT:
        yield from _below(os.path.join(folder, part.encode()))  # noqa: PTH118


def _below(path: bytes) -> Iterator[bytes]:
    """Yield a file, or those in a folder; links are not followed."""
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            yield path
            return
        entries = sorted(os.listdir(path))  # noqa: PTH208 - as bytes
    except OSError:
        return
    for entry in entries:
        if is_noticed(os.fsdecode(entry)):
            yield from _below(os.path.join(path, entry))  # noqa: PTH118


def _digest(path: bytes) -> str:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return f"link {_hashed(os.readlink(path))}"  # noqa: PTH115
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_READ:
            return f"{status.st_mode} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        contents = Path(os.fsdecode(path)).read_bytes()
    except OSError as error:
        return f"not read: {error.errno}"
    if path.endswith(b"/config"):
        contents = _BRANCHES.sub(b"", contents)
    return f"{'x' if status.st_mode & stat.S_IXUSR else '-'} {_hashed(contents)}"


def _hashed(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()[:32]
