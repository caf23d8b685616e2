"""ForkedFiles: the files of a conversation that was forked with them: in worktrees that are only for it."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from bullpen.file_changes import ChangeRecord
from bullpen.files.own_workspace import STATE, own_paths, read_state


class ForkedFiles:
    """Where the folders of a team are in one conversation."""

    def __init__(self, places: Mapping[str, Path]) -> None:
        self.places = places
        """For each folder that was forked, the worktree that has its files; those of workers after their names."""

    def place(self, folder: Path) -> Path:
        """Return where a folder of the team is in this conversation."""
        found = self.found(Path(os.path.realpath(folder)))
        if found is None:
            return folder
        worktree, moved = found
        if worktree.is_dir():
            # An empty folder is not part of what is kept.
            moved.mkdir(parents=True, exist_ok=True)
        return moved

    def found(self, folder: Path) -> tuple[Path, Path] | None:
        """Return the worktree that has the files of a folder, and where in it they are; None if it was not forked."""
        around = [shared for shared in self.places if folder.is_relative_to(shared)]
        if not around:
            return None
        # A repository may be in another one.
        shared = max(around, key=len)
        return self.places[shared], self.places[shared] / folder.relative_to(shared)

    def original(self, root: Path) -> Path:
        """Return which folder a worktree has the files of; any other folder is its own."""
        return next((Path(shared) for shared, worktree in self.places.items() if worktree == root), root)

    def here(self, record: ChangeRecord) -> ChangeRecord:
        """Return a record as being about the files of this conversation: it may be a copy of the other one's."""
        worktree = self.places.get(record.changes.folder)
        return record if worktree is None else replace(record, changes=replace(record.changes, folder=str(worktree)))


def forked_files(home: Path, conversation_id: str) -> ForkedFiles:
    """Return the files that a conversation was forked with, on this machine; most have none."""
    known = ((path, read_state(path.with_name(path.name + STATE))) for path in own_paths(home, conversation_id))
    return ForkedFiles({state.shared: path for path, state in known if state is not None and state.is_fork})
