"""Files that are there at a moment and not in its snapshot: ignored ones, large ones, those that cannot be read.

They are known by name, so that a rule or a size that changes later does not make them new: nobody's undo removes them.
"""

import os
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from bullpen.files.paths import folders_above, shown
from bullpen.files.repository import Repository

FOLDER = "beside"
FEW = 3


def write_beside(repository: Repository, tree: str, others: Iterable[bytes]) -> None:
    """Keep with a snapshot what is beside it: ignored files, and others; a path with a slash at its end is a folder.

    Raises GitFailed or OSError.
    """
    options = ("--others", "--ignored", "--directory", "-z", "--exclude-standard", *repository.excludes())
    ignored = sorted(repository.git().run("ls-files", *options).split(b"\0")[:-1])
    # A folder in which all files are ignored one by one is listed like one that is ignored itself; others may come.
    alone = [path for path, following in pairwise((*ignored, b"")) if not _is_in(following, path)]
    paths = sorted({*alone, *others})
    file = _file(repository, tree)
    if not paths:
        file.unlink(missing_ok=True)
        return
    data = zlib.compress(b"\0".join(paths), 1)
    file.parent.mkdir(exist_ok=True)
    new = file.with_name(f"{tree}.{os.getpid()}.new")
    new.write_bytes(data)
    new.replace(file)


def read_beside(repository: Repository, tree: str) -> frozenset[bytes]:
    """Return what was beside a snapshot; nothing if that is not known."""
    try:
        data = _file(repository, tree).read_bytes()
        return frozenset(zlib.decompressobj().decompress(data).split(b"\0"))
    except (OSError, zlib.error):
        return frozenset()


def is_beside(path: bytes, beside: frozenset[bytes]) -> bool:
    """Return whether a path is among these, or in a folder that is."""
    return path in beside or any(folder + b"/" in beside for folder in folders_above(path))


def beside_note(paths: Sequence[bytes]) -> str:
    """Return the sentence about files that were beside a snapshot, and are in the other one."""
    if not paths:
        return ""
    names = ", ".join(shown(path)[0] for path in paths[:FEW])
    more = f" and {len(paths) - FEW:,} more" if len(paths) > FEW else ""
    was, them = ("was", "it") if len(paths) == 1 else ("were", "them")
    return (
        f"{names}{more} {was} ignored, too large or not readable before, so what changed there is not known, and undo "
        f"leaves {them} alone."
    )


def _is_in(path: bytes, folder: bytes) -> bool:
    return folder.endswith(b"/") and path.startswith(folder)


def _file(repository: Repository, tree: str) -> Path:
    return repository.own / FOLDER / tree
