"""FilesToFork: the files of a conversation as they were after a message, brought into worktrees for a fork."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from bullpen.conversation.file_history import files_home
from bullpen.conversation.forked_files import ForkedFiles, forked_files
from bullpen.errors import BullpenError, FilesError
from bullpen.files.compare import is_tree
from bullpen.files.own_paths import FOLDER, own_path
from bullpen.files.own_workspace import OwnWorkspace, remove_own_workspaces
from bullpen.files.place import hashed
from bullpen.files.workspace import FolderSnapshots
from bullpen.files.worktree import why_no_worktree
from bullpen.store.base import Store

NOT_HERE = (
    "What files were is not kept beside this database, so they cannot be forked. Fork it without files; its agents "
    "then work in the same folders as those of the other conversation."
)
NOT_CHANGED = (
    "No agent has changed files in {} that bullpen knows of, so there are no files to fork. Fork it without files; its "
    "agents then work in the same folder as those of the other conversation."
)
NOT_KNOWN = (
    "What the files in {} were after message {} is not known, so they cannot be forked: {}. Nothing was written."
)


def files_after(
    store: Store, conversation_id: str, last: int, forked: ForkedFiles, is_worktree: Callable[[str], bool]
) -> dict[str, str]:
    """Return for each folder the id of all files after the last change up to a message; raises BullpenError.

    `forked` are the files of the conversation itself; `is_worktree` says whether a folder is an agent's own.
    """
    trees: dict[str, str] = {}
    for record in store.changes(conversation_id, patches=False):
        folder = str(forked.original(Path(record.changes.folder)))
        if record.kind == "collision" or is_worktree(folder):
            continue
        if record.after_message <= last and record.state == "done":
            trees[folder] = record.changes.after
        else:
            # What was found when the next turn began is what there was before.
            trees.setdefault(folder, record.changes.before)
    if not trees:
        raise BullpenError(NOT_CHANGED.format(conversation_id))
    for folder, tree in trees.items():
        if not is_tree(tree):
            raise BullpenError(NOT_KNOWN.format(folder, last, "only names and sizes were kept"))
    return trees


class FilesToFork(Protocol):
    """The files of a conversation that is being forked. Everything here blocks."""

    def plan(self, fork_id: str) -> dict[str, str]:
        """Note where they will be, so that nobody works elsewhere in the fork, even if it is never complete.

        Return what the fork itself must remember of that.
        """

    def make(self) -> Mapping[str, Path]:
        """Make the worktrees, with the files in them, and return them by the folders; raises BullpenError."""

    def remove(self) -> None:
        """Remove what there is of them, as far as that is possible."""

    def original(self, root: Path) -> Path:
        """Return which folder of the team a root is, which may be that of an earlier fork."""


FindFiles = Callable[[Store, str, int], FilesToFork]
"""Finds the files of a conversation as they were after a message."""


class FilesHere:
    """Files on this machine, to be forked."""

    def __init__(self, store: Store, conversation_id: str, last: int) -> None:
        home = files_home(store)
        if home is None:
            raise BullpenError(NOT_HERE)
        forked = forked_files(home, conversation_id)
        worktrees = str(Path(os.path.realpath(home)) / FOLDER)
        trees = files_after(store, conversation_id, last, forked, lambda folder: folder.startswith(f"{worktrees}/"))
        for folder in trees:
            if reason := why_no_worktree(Path(folder)):
                raise BullpenError(NOT_KNOWN.format(folder, last, reason))
        self.original = forked.original
        self._home = home
        self._last = last
        self._trees = trees
        self._fork_id = ""
        self._planned: dict[str, OwnWorkspace] = {}

    def plan(self, fork_id: str) -> dict[str, str]:
        """Note where they will be; the fork finds them there."""
        snapshots, self._fork_id = FolderSnapshots(self._home), fork_id
        for folder in self._trees:
            path = own_path(self._home, fork_id, name_of(Path(folder)))
            self._planned[folder] = OwnWorkspace(snapshots, path, "the fork", Path(folder))
        for own in self._planned.values():
            own.note(is_fork=True)
        return {}

    def make(self) -> dict[str, Path]:
        """Make the worktrees, and return them by the folders; raises BullpenError."""
        for folder, own in self._planned.items():
            try:
                own.bring_up_to_date(self._trees[folder], own.path)
            except FilesError as error:
                raise BullpenError(NOT_KNOWN.format(folder, self._last, str(error).rstrip("."))) from error
        return {folder: own.path for folder, own in self._planned.items()}

    def remove(self) -> None:
        """Remove what there is of them."""
        with suppress(OSError):
            remove_own_workspaces(self._home, self._fork_id)


def name_of(folder: Path) -> str:
    """Return what a fork's worktree of a folder is called, as those of members by their names."""
    return f"*{hashed(folder)}"
