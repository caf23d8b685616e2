"""Conflict marks that we wrote into files, and that nobody has removed yet."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from bullpen.files.merge import MOST_MERGED_BYTES

FIRST, LAST = b"<<<<<<< ours", b">>>>>>> theirs"


def still_marked(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return which of these files still have both versions in them, with marks around them. Blocks."""
    return tuple(path for path in paths if _is_marked(root / path))


def _is_marked(path: Path) -> bool:
    try:
        # Somebody may have put a link or a pipe in its place.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return False
            lines = set(file.read(2 * MOST_MERGED_BYTES).splitlines())
    except (OSError, ValueError):
        return False
    return FIRST in lines and LAST in lines
