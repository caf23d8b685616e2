"""WorktreeDesk: makes, brings up to date, looks at and removes agents' worktrees on a worker, as nodes ask for it."""

from pathlib import Path
from typing import Any

import msgspec

from bullpen.cluster.worker_places import WorkerPlaces
from bullpen.cluster.worktree_work import (
    BringUpToDate,
    CompleteWorktree,
    FindMarked,
    FindWorktree,
    FoundWorktree,
    ListWorktrees,
    LookAtWorktree,
    MakeFork,
    NoteState,
    RemoveWorktree,
    WorktreeWork,
)
from bullpen.errors import NoOwnWorkspace, NotAllowedHere
from bullpen.files.own_workspace import OwnState, OwnWorkspace, own_paths
from bullpen.files.place import find_place
from bullpen.files.workspace import FolderSnapshots

NOT_FOR_NODES = frozenset({"member", "shared", "is_made", "head", "syncing", "is_fork"})
"""What only the worker itself notes of a worktree."""


class WorktreeDesk:
    """The worktrees on a worker. Everything here blocks."""

    def __init__(self, places: WorkerPlaces, snapshots: FolderSnapshots) -> None:
        self._places = places
        self._snapshots = snapshots

    def path(self, conversation: str, work: WorktreeWork) -> Path:
        """Return which worktree something concerns."""
        return self._places.path(conversation, work.member, work.turn)

    def do(self, conversation: str, work: WorktreeWork) -> object:
        """Do something, and return the answer; an error is raised if that is not possible, or not allowed."""
        if isinstance(work.ask, ListWorktrees):
            return self._all(conversation)
        own, place = self._own(conversation, work)
        match work.ask:
            case FindWorktree():
                return self._found(own, work.turn)
            case BringUpToDate(tree):
                return own.bring_up_to_date(tree, own.path / place.relative_to(find_place(place).root))
            case MakeFork(tree):
                # First, so that nobody works in the other conversation's files if it is never complete.
                own.note(is_fork=True)
                return own.bring_up_to_date(tree, own.path)
            case NoteState(changed):
                own.note(**_checked(own.state, changed))
                return None
            case LookAtWorktree():
                return own.look()
            case CompleteWorktree():
                own.complete()
                return None
            case FindMarked(files):
                return own.still_marked(file for file in files if _is_within(own.shared, file))
            case RemoveWorktree():
                own.remove()
                return None

    def _own(self, conversation: str, work: WorktreeWork) -> tuple[OwnWorkspace, Path]:
        """Return a worktree, made or not, and the agent's place in the shared folder."""
        path = self.path(conversation, work)
        state = self._places.state_of(path)
        folder = work.folder or (state.shared if state is not None else "")
        if not folder:
            raise NoOwnWorkspace(work.member, "it has none there.")
        is_fork = isinstance(work.ask, MakeFork) or (state is not None and state.is_fork)
        find = self._places.original_of if is_fork else self._places.place_of
        within, place = find(conversation, folder)
        root = find_place(place).root
        if not root.is_relative_to(within):
            raise NoOwnWorkspace(
                work.member, f"the repository {root} is not in one of the folders of the worker's file. Name it there."
            )
        return OwnWorkspace(self._snapshots, path, work.member, place), place

    def _found(self, own: OwnWorkspace, turn: str) -> FoundWorktree:
        is_known = self._places.state_of(own.path) is not None
        return FoundWorktree(
            path=str(own.path),
            shared=str(own.shared),
            state=own.state,
            is_known=is_known,
            exists=is_known and own.exists,
            turn=turn,
        )

    def _all(self, conversation: str) -> tuple[FoundWorktree, ...]:
        found = []
        for path in own_paths(self._places.home, conversation):
            if self._places.worktree_at(conversation, path) is None:
                continue
            own = OwnWorkspace.found(self._snapshots, path)
            if own is not None:
                # Its name has the turn at its end, if it is for one only.
                found.append(self._found(own, "".join(path.name.split(".")[2:])))
        return tuple(found)


def _checked(state: OwnState, changed: dict[str, Any]) -> dict[str, Any]:
    """Return what is to be noted, in the types that it has; NotAllowedHere is raised for anything else."""
    known = msgspec.to_builtins(state) | {"member": state.member, "shared": state.shared}
    if unknown := [name for name in changed if name in NOT_FOR_NODES or name not in OwnState.__struct_fields__]:
        raise NotAllowedHere(f"{unknown[0]!r} of a worktree is not for others to say")
    new = msgspec.convert(known | changed, OwnState)
    return {name: getattr(new, name) for name in changed}


def _is_within(root: Path, file: str) -> bool:
    return (root / file).resolve().is_relative_to(root.resolve())
