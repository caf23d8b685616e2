"""A listing: names, sizes and times of all files, where contents cannot be kept."""

import contextlib
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from bullpen.file_changes import FileChange
from bullpen.files.paths import shown

PREFIX = "listing-"
MOST_FILES = 200_000
MOST_KEPT = 40
NOT_LISTED = {".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


class Listed(Struct, frozen=True, array_like=True):
    """What is known of a file without reading it."""

    mode: int
    size: int
    modified: int = 0
    """Its times and number on the disk; 0 where the contents were kept instead."""
    changed: int = 0
    inode: int = 0

    def is_as(self, other: "Listed") -> bool:
        """Return whether the file is probably the same, as far as both know."""
        if not self.inode or not other.inode:
            return (self.mode, self.size) == (other.mode, other.size)
        return self == other


Listing = dict[bytes, Listed]


class TooManyFiles(Exception):
    """A folder with more files than we list."""


def list_folder(root: Path, not_looked_at: tuple[str, ...] = ()) -> Listing:
    """Return what is in a folder, apart from our own; raises TooManyFiles, or OSError if it cannot."""
    found: Listing = {}
    ours = tuple(map(os.fsencode, not_looked_at))
    for path, status in _files(os.fsencode(root)):
        if path.startswith(ours):
            continue
        found[path] = Listed(
            _git_mode(status.st_mode), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        )
        if len(found) > MOST_FILES:
            raise TooManyFiles
    return found


def write_listing(folder: Path, listing: Listing) -> str:
    """Keep a listing in a folder, and return its id; only the newest are kept."""
    data = zlib.compress(msgspec.msgpack.encode(sorted(listing.items())), 1)
    name = PREFIX + hashlib.sha256(data).hexdigest()[:40]
    new = folder / f"{name}.{os.getpid()}.new"
    new.write_bytes(data)
    new.replace(folder / name)
    for old in sorted(folder.glob(f"{PREFIX}*"), key=lambda file: file.stat().st_mtime)[:-MOST_KEPT]:
        old.unlink(missing_ok=True)
    return name


def read_listing(folder: Path, name: str) -> Listing:
    """Return a listing by its id; raises OSError or ValueError."""
    data = zlib.decompressobj().decompress((folder / Path(name).name).read_bytes())
    return dict(msgspec.msgpack.decode(data, type=list[tuple[bytes, Listed]]))


def compare_listings(before: Listing, after: Listing) -> tuple[FileChange, ...]:
    """Return which files came, went, or are not the same."""
    found: list[FileChange] = []
    for path in sorted(before.keys() | after.keys()):
        name, raw = shown(path)
        old, new = before.get(path), after.get(path)
        if old is None:
            found.append(FileChange(path=name, raw_path=raw, kind="added"))
        elif new is None:
            found.append(FileChange(path=name, raw_path=raw, kind="deleted"))
        elif not old.is_as(new):
            found.append(FileChange(path=name, raw_path=raw, kind="changed"))
    return tuple(found)


def _files(root: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield every file and symbolic link; folders that cannot be read are left out, but not the root."""
    waiting = [b""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(root + b"/" + inside) as entries:
                for entry in entries:
                    path = inside + b"/" + entry.name if inside else entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        yield from _file(path, entry)
                    elif os.fsdecode(entry.name) not in NOT_LISTED:
                        waiting.append(path)
        except OSError:
            if not inside:
                raise


def _file(path: bytes, entry: "os.DirEntry[bytes]") -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield a file or symbolic link with its status; nothing for a socket, a device, or what is gone."""
    with contextlib.suppress(FileNotFoundError):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            yield path, status


def _git_mode(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return 0o120000
    return 0o100755 if mode & stat.S_IXUSR else 0o100644
