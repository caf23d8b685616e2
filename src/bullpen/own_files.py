"""bullpen's own files: who may edit them decides what agents may do, who comes in, and what was said."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import PurePath

from bullpen.config import data_folder, state_folder

MAGIC = b"SQLite format 3\0"
LOGS = ("-wal", "-journal")
BESIDE = ("", *LOGS, "-shm", ".sessions", ".sessions.lock")
"""How the files are called that belong to a database; --db puts it anywhere, and it may be another process's."""
HISTORY = "-files"
"""How the folder is called that has earlier states of files."""
DATABASE = ".db"
"""How bullpen and its docs call a database: what belongs to one with such a name counts before it exists."""
NAME = "conversations.db"
"""How it calls its own, in any folder."""


def is_own_file(real: str, folder: str) -> bool:
    """Return whether a file in an agent's folder is one of bullpen's; both are given as they are without links."""
    if _has_own_name(real) or any(_is_in(real, own) for own in _folders(folder)):
        return True
    return any(map(_is_database, _databases(real)))


def _has_own_name(real: str) -> bool:
    """Return whether bullpen would give a file this name, whether or not its database is there."""
    has_base = any(one != real and one.casefold().endswith(DATABASE) for one in _databases(real))
    return has_base or PurePath(real).name.casefold().startswith(NAME)


def _folders(folder: str) -> Iterator[str]:
    for own in (data_folder, state_folder):
        try:
            real = os.path.realpath(own())
        except RuntimeError:
            # There is no home, and so no such folder.
            continue
        # Agents' own worktrees are among bullpen's data.
        if real == folder or not _is_in(folder, real):
            yield real


def _databases(real: str) -> Iterator[str]:
    """Yield what databases a file may belong to."""
    for ending in BESIDE:
        if real.casefold().endswith(ending):
            yield real.removesuffix(real[len(real) - len(ending) :])
    for parent in PurePath(real).parents:
        if parent.name.casefold().endswith(HISTORY):
            yield str(parent)[: -len(HISTORY)]


def _is_database(path: str) -> bool:
    if any(os.path.lexists(path + ending) for ending in LOGS):
        return True
    if not os.path.isfile(path):  # noqa: PTH113 - a pipe would be waited for
        return False
    with open(path, "rb") as file:  # noqa: PTH123 - a path may be any text
        return file.read(len(MAGIC)) == MAGIC


def _is_in(path: str, folder: str) -> bool:
    plain, around = (unicodedata.normalize("NFC", one).casefold() for one in (path, folder))
    return plain == around or plain.startswith(f"{around.rstrip('/')}/")
