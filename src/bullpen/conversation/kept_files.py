"""What files were, as far as a conversation still names it: the rest is removed."""

from pathlib import Path

import msgspec

from bullpen.conversation.file_history import files_home, home_beside
from bullpen.errors import StoreError
from bullpen.files.git import GitFailed
from bullpen.files.holding import alone
from bullpen.files.shrink import ids_in, kept_bytes, shrink
from bullpen.store.base import Store


def kept_file_bytes(database: Path) -> int:
    """Return how much what files were takes beside a database, agents' worktrees included."""
    return kept_bytes(home_beside(database))


def remove_unneeded_files(store: Store) -> int | None:
    """Remove contents of files that no conversation names; return how many bytes, None if that is not possible now.

    It is not while a process uses them, nor if a record cannot be read: nothing is removed that may be needed.
    """
    home = files_home(store)
    if home is None or not home.is_dir():
        return 0
    with alone(home) as is_alone:
        if not is_alone:
            return None
        try:
            return shrink(home, *_named(store))
        except (GitFailed, OSError, StoreError):
            return None


def _named(store: Store) -> tuple[set[str], set[str]]:
    """Return every id that a conversation names, and every folder."""
    ids: set[str] = set()
    folders: set[str] = set()
    for conversation in store.conversations():
        ids |= ids_in(msgspec.json.encode(conversation.progress))
        for record in store.changes(conversation.id, patches=False):
            ids |= ids_in(msgspec.json.encode(record))
            folders.add(record.changes.folder)
    return ids, folders
