"""The file in which a CLI keeps a session: found, compared with what it was, and put back to that."""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from bullpen.agents.spec import SessionSpec
from bullpen.memory import FileMark

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{7,99}")
_PIECE = 1024 * 1024


def is_session_id(text: str | None) -> bool:
    """Return whether a CLI's id for a session is one that can be passed to it and looked for."""
    return text is not None and _ID.fullmatch(text) is not None


def find_session_file(spec: SessionSpec, environment: Mapping[str, str], session_id: str) -> Path | None:
    """Return the file of a session; None if there is none, or more than one.

    What is only a link is not one: it could lead to any other file, and this one may be cut.
    """
    if not is_session_id(session_id):
        return None
    found = list(session_home(spec, environment).glob(spec.files.format(id=session_id)))
    return found[0] if len(found) == 1 and not found[0].is_symlink() else None


def session_home(spec: SessionSpec, environment: Mapping[str, str]) -> Path:
    """Return the folder in which a CLI keeps its files."""
    named = environment.get(spec.home_variable)
    return Path(named) if named else Path(environment.get("HOME") or Path.home(), spec.home)


def mark_of(file: Path) -> FileMark:
    """Return what a file is now."""
    now = file.stat()
    if not stat.S_ISREG(now.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", str(file))
    return FileMark(size=now.st_size, digest=_digest(file, now.st_size), changed_at=now.st_mtime_ns)


def compared(file: Path, mark: FileMark) -> Literal["same", "longer", "changed"]:
    """Return whether a file is what it was, begins with what it was, or neither."""
    now = file.stat()
    size = now.st_size
    if size == mark.size and now.st_mtime_ns == mark.changed_at:
        # Nobody has touched it, and reading all of it takes time.
        return "same"
    # Read even if it is shorter: what cannot be read is not called changed.
    if _digest(file, mark.size) != mark.digest or size < mark.size:
        return "changed"
    return "same" if size == mark.size else "longer"


def put_back(file: Path, mark: FileMark) -> None:
    """Remove what was added to a file. It must begin with what it was."""
    os.truncate(file, mark.size)


def _digest(file: Path, size: int) -> str:
    # Processors have instructions for this one.
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        left = size
        while left and (piece := opened.read(min(left, _PIECE))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()
