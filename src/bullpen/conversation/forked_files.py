"""ForkedFiles: the files of a conversation that was forked with them: in worktrees that are only for it."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from bullpen.errors import BullpenError, FilesError
from bullpen.file_changes import ChangeRecord
from bullpen.files.compare import is_tree
from bullpen.files.own_paths import FOLDER, own_path
from bullpen.files.own_workspace import STATE, OwnWorkspace, own_paths, read_state
from bullpen.files.place import hashed
from bullpen.files.workspace import FolderSnapshots
from bullpen.files.worktree import why_no_worktree
from bullpen.store.base import Store

NOT_CHANGED = (
    "No agent has changed files in {} that bullpen knows of, so there are no files to fork. Fork it without files; its "
    "agents then work in the same folder as those of the other conversation."
)
NOT_KNOWN = (
    "What the files in {} were after message {} is not known, so they cannot be forked: {}. Nothing was written."
)


class ForkedFiles:
    """Where the folders of a team are in one conversation."""

    def __init__(self, places: Mapping[str, Path]) -> None:
        self.places = places
        """For each folder that was forked, the worktree that has its files."""

    def place(self, folder: Path) -> Path:
        """Return where a folder of the team is in this conversation."""
        real = Path(os.path.realpath(folder))
        for shared, worktree in self.places.items():
            if real.is_relative_to(shared):
                moved = worktree / real.relative_to(shared)
                if worktree.is_dir():
                    # An empty folder is not part of what is kept.
                    moved.mkdir(parents=True, exist_ok=True)
                return moved
        return folder

    def original(self, root: Path) -> Path:
        """Return which folder a worktree has the files of; any other folder is its own."""
        return next((Path(shared) for shared, worktree in self.places.items() if worktree == root), root)

    def here(self, record: ChangeRecord) -> ChangeRecord:
        """Return a record as being about the files of this conversation: it may be a copy of the other one's."""
        worktree = self.places.get(record.changes.folder)
        return record if worktree is None else replace(record, changes=replace(record.changes, folder=str(worktree)))


def forked_files(home: Path | None, conversation_id: str) -> ForkedFiles:
    """Return the files that a conversation was forked with; most have none."""
    if home is None:
        return ForkedFiles({})
    known = ((path, read_state(path.with_name(path.name + STATE))) for path in own_paths(home, conversation_id))
    return ForkedFiles({state.shared: path for path, state in known if state is not None and state.is_fork})


def files_after(store: Store, conversation_id: str, last: int, home: Path) -> dict[str, str]:
    """Return for each folder the id of all files after the last change up to a message; raises BullpenError."""
    before = {str(path): shared for shared, path in forked_files(home, conversation_id).places.items()}
    worktrees = str(Path(os.path.realpath(home)) / FOLDER)
    trees: dict[str, str] = {}
    for record in store.changes(conversation_id, patches=False):
        folder = before.get(record.changes.folder, record.changes.folder)
        if record.kind == "collision" or folder.startswith(f"{worktrees}/"):
            continue
        if record.after_message <= last and record.state == "done":
            trees[folder] = record.changes.after
        else:
            # What was found when the next turn began is what there was before.
            trees.setdefault(folder, record.changes.before)
    if not trees:
        raise BullpenError(NOT_CHANGED.format(conversation_id))
    for folder, tree in trees.items():
        if reason := why_no_worktree(Path(folder)) or ("" if is_tree(tree) else "only names and sizes were kept"):
            raise BullpenError(NOT_KNOWN.format(folder, last, reason))
    return trees


def plan_forked_files(home: Path, fork_id: str, trees: Mapping[str, str]) -> dict[str, OwnWorkspace]:
    """Note which worktrees a fork is to have, so that nobody works elsewhere in it, even if it is never complete."""
    snapshots = FolderSnapshots(home)
    planned = {
        folder: OwnWorkspace(snapshots, own_path(home, fork_id, f"*{hashed(Path(folder))}"), "the fork", Path(folder))
        for folder in trees
    }
    for own in planned.values():
        own.note(is_fork=True)
    return planned


def make_forked_files(planned: Mapping[str, OwnWorkspace], trees: Mapping[str, str], last: int) -> None:
    """Make the worktrees of a fork, with the files in them; raises BullpenError."""
    for folder, own in planned.items():
        try:
            own.bring_up_to_date(trees[folder], own.path)
        except FilesError as error:
            raise BullpenError(NOT_KNOWN.format(folder, last, str(error).rstrip("."))) from error
