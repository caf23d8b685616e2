"""WorkerPlaces: where something is on a worker that a conversation names: in folders of its file, or worktrees."""

import os
from pathlib import Path

from bullpen.cluster.orders import Work
from bullpen.cluster.worker_file import WorkerFile
from bullpen.conversation.forked_files import forked_files
from bullpen.errors import NotAllowedHere
from bullpen.files.own_paths import candidate_path, own_path
from bullpen.files.own_workspace import STATE, OwnState, read_state
from bullpen.files.place import find_place

HOME = "worker-files"
"""The folder in a worker's data folder that has what is kept of others."""
LOST = "the files of {} that this conversation was forked with are not there"


class WorkerPlaces:
    """Places on this machine. A node names a folder, or whose worktree it means, but never where one is to be."""

    def __init__(self, file: WorkerFile, home: Path) -> None:
        self.home = home
        self._file = file

    def place_of(self, conversation: str, cwd: str) -> tuple[Path, Path]:
        """Return within what a place is, and the place; NotAllowedHere is raised for one that is not to be touched.

        Within which is a folder of the worker's file, or a worktree that the conversation has of one. If it was forked
        with the files of a folder, they are in such a worktree, and the folder itself is not its own.
        """
        within, place = self.original_of(conversation, cwd)
        found = None if self._is_ours(conversation, place) else forked_files(self.home, conversation).found(place)
        if found is None:
            return within, place
        worktree, moved = found[0], Path(os.path.realpath(found[1]))
        state = self.state_of(worktree)
        if state is None or not state.is_made or not worktree.is_dir():
            raise NotAllowedHere(LOST.format(within))
        if not moved.is_relative_to(worktree):
            raise NotAllowedHere(f"{cwd!r} is not in the files of this fork, {worktree}")
        # An empty folder is not part of what is kept.
        moved.mkdir(parents=True, exist_ok=True)
        return worktree, moved

    def original_of(self, conversation: str, cwd: str) -> tuple[Path, Path]:
        """Return the same, but of a folder of the worker's file itself, also for a fork."""
        worktree = self.worktree_at(conversation, Path(cwd)) if Path(cwd).is_absolute() else None
        return self._file.place_of(cwd) if worktree is None else (worktree, Path(os.path.realpath(cwd)))

    def worktree_at(self, conversation: str, place: Path) -> Path | None:
        """Return the worktree of a conversation that a place is in; None if it is in none."""
        ours, real = self._folder(conversation), Path(os.path.realpath(place))
        if not self._is_ours(conversation, real):
            return None
        worktree = ours / real.relative_to(ours).parts[0]
        if (state := self.state_of(worktree)) is None:
            return None
        # Folders can be removed from its file.
        self.original_of(conversation, state.shared)
        return worktree

    def path(self, conversation: str, member: str, turn: str) -> Path:
        """Return where a member's worktree is, or is to be."""
        if turn:
            return candidate_path(self.home, conversation, member, turn)
        return own_path(self.home, conversation, member)

    def state_of(self, worktree: Path) -> OwnState | None:
        """Return what is known of a worktree; None if nothing is."""
        return read_state(worktree.with_name(worktree.name + STATE))

    def folder_for(self, conversation: str, work: Work) -> Path:
        """Return where a turn runs; NotAllowedHere is raised for a place outside of all folders and worktrees."""
        within, place = self.place_of(conversation, work.cwd)
        lost = [root for root in work.forked if place.is_relative_to(root)]
        if lost and not self._is_ours(conversation, within):
            raise NotAllowedHere(LOST.format(lost[0]))
        if work.apart is None:
            return place
        worktree = self.path(conversation, work.member, work.apart)
        root, state = find_place(place).root, self.state_of(worktree)
        if state is None or not state.is_made or Path(state.shared) != root:
            raise NotAllowedHere(f"{work.member} has no worktree of {root} there")
        return worktree / place.relative_to(root)

    def _is_ours(self, conversation: str, real: Path) -> bool:
        ours = self._folder(conversation)
        return real != ours and real.is_relative_to(ours)

    def _folder(self, conversation: str) -> Path:
        return own_path(self.home, conversation, "").parent
