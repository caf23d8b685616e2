"""WorktreesHere: the worktrees of one conversation's agents on this machine."""

import os
from pathlib import Path

from bullpen.files.own_paths import candidate_path, own_path
from bullpen.files.own_workspace import OwnWorkspace, own_workspaces
from bullpen.files.place import find_place
from bullpen.files.workspace import FolderSnapshots
from bullpen.files.worktree import why_no_worktree
from bullpen.files.worktrees import Worktree


class WorktreesHere:
    """Worktrees beside what is kept of folders."""

    are_elsewhere = False

    def __init__(self, snapshots: FolderSnapshots, conversation_id: str) -> None:
        self._snapshots = snapshots
        self._home = snapshots.home
        self._id = conversation_id

    def of(self, member: str, shared: Path, turn_id: str = "", *, begins: bool = False) -> OwnWorkspace:
        """Return the worktree of an agent, or the one for a turn only; made or not."""
        del begins
        return OwnWorkspace(self._snapshots, self._path(member, turn_id), member, shared)

    def found(self, member: str, turn_id: str = "") -> OwnWorkspace | None:
        """Return a worktree that was made, or is half made; None if there is none."""
        return OwnWorkspace.found(self._snapshots, self._path(member, turn_id))

    def all(self) -> list[Worktree]:
        """Return all that were made, or are half made."""
        return list(own_workspaces(self._home, self._id))

    def folder(self, member: str, shared: Path, turn_id: str = "") -> Path:
        """Return where an agent works in its worktree: at the same place as in the shared folder."""
        return self._path(member, turn_id) / Path(os.path.realpath(shared)).relative_to(find_place(shared).root)

    def why_not(self, shared: Path) -> str:
        """Return why there can be no worktree beside a folder, and what to do about it; nothing if there can."""
        return why_no_worktree(shared)

    def is_of(self, folder: Path, member: str) -> bool:
        """Return whether a folder is the worktree of a member, and not one for a turn only."""
        return folder == self._path(member, "")

    def is_of_another(self, folder: Path) -> bool:
        """Return whether a folder is in a worktree of another conversation."""
        ours = self._path("", "").parent
        return folder.is_relative_to(ours.parent) and not folder.is_relative_to(ours)

    def _path(self, member: str, turn_id: str) -> Path:
        if turn_id:
            return candidate_path(self._home, self._id, member, turn_id)
        return own_path(self._home, self._id, member)
