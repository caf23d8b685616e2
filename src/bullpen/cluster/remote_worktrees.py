"""RemoteWorktrees: the worktrees of one conversation's agents on workers, and which worker has which."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from bullpen.cluster.errands import There
from bullpen.cluster.folder_names import folder_at, own_folder, read_folder, shared_cwd
from bullpen.cluster.remote_files import RemoteFiles
from bullpen.cluster.remote_folders import RemoteFolders
from bullpen.cluster.worker_places import HOME
from bullpen.cluster.worktree_work import (
    BringUpToDate,
    CompleteWorktree,
    FindMarked,
    FindWorktree,
    FoundWorktree,
    ListWorktrees,
    LookAtWorktree,
    NoteState,
    RemoveWorktree,
    WorktreeAsk,
    WorktreeWork,
)
from bullpen.errors import NoOwnWorkspace, WorkerAway, WorkerRefused
from bullpen.files.own_paths import FOLDER, candidate_path, own_path
from bullpen.files.own_workspace import OwnState
from bullpen.files.worktrees import Worktree
from bullpen.store.base import Store

T = TypeVar("T")


class RemoteWorktree:
    """A worktree on a worker. Everything here blocks."""

    def __init__(self, folders: RemoteFolders, there: There, work: WorktreeWork, found: FoundWorktree) -> None:
        self.member = work.member
        self.path = folder_at(there, found.path)
        self.shared = folder_at(there, found.shared)
        self._folders = folders
        self._desk = folders.desk(there)
        self._turn = work.turn
        self._shared_there = found.shared
        self._using = folders.lock_of(self.path)

    @property
    def state(self) -> OwnState:
        """What is known of it."""
        return self._ask(FindWorktree(), FoundWorktree).state

    def note(self, **changed: Any) -> None:
        """Write what is known of it from now on."""
        self._ask(NoteState(changed), type(None))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody else of this conversation change it: it has no owner but this node."""
        with self._using:
            yield

    @property
    def exists(self) -> bool:
        """Whether there is a worktree, and an agent may have worked in it."""
        return self._ask(FindWorktree(), FoundWorktree).exists

    @property
    def workspace(self) -> RemoteFiles:
        """Its files."""
        return self._folders.workspace(self.path)

    @property
    def shared_workspace(self) -> RemoteFiles:
        """The folder that the agent has in common with others."""
        return self._folders.workspace(self.shared)

    def look(self) -> str:
        """Return the id of all its files; if somebody has removed it, as they were when they were last looked at."""
        return self._ask(LookAtWorktree(), str)

    def has_unmerged_work(self) -> bool:
        """Return whether something in it is not in the shared folder."""
        return self.look() != self.state.base

    def still_marked(self, files: Iterable[str]) -> tuple[str, ...]:
        """Return which of these files of the shared folder still have both versions in them."""
        return self._ask(FindMarked(tuple(files)), tuple[str, ...])

    def bring_up_to_date(self, tree: str, cwd: Path) -> str:
        """Bring all files of the shared folder into it, if it holds no work of its own; return the id of its files."""
        return self._ask(BringUpToDate(tree), str, shared_cwd(cwd))

    def complete(self) -> None:
        """Complete what was begun to bring files into it when its worker was killed."""
        self._ask(CompleteWorktree(), type(None))

    def remove(self) -> None:
        """Remove it, with everything in it."""
        self._ask(RemoveWorktree(), type(None))

    def _ask(self, ask: WorktreeAsk, kind: type[T], folder: str = "") -> T:
        folder = folder or self._shared_there
        return self._desk.ask(WorktreeWork(folder=folder, member=self.member, turn=self._turn, ask=ask), kind)


class RemoteWorktrees:
    """Worktrees on workers. Each member works on one worker at a time; what it has left on another one stays there."""

    are_elsewhere = True

    def __init__(self, folders: RemoteFolders, conversation_id: str, pools: Mapping[str, str], store: Store) -> None:
        """`pools` are those of the members."""
        self._folders = folders
        self._id = conversation_id
        self._pools = pools
        self._store = store
        self._where: dict[str, There] | None = None
        """On which worker each was last used, by its name."""

    def of(self, member: str, shared: Path, turn_id: str = "", *, begins: bool = False) -> RemoteWorktree | None:
        """Return the worktree of an agent, or the one for a turn only; None if it is not known on which worker."""
        pool = read_folder(shared)[0].pool
        there = There(pool, self._folders.worker_of(pool)) if begins else self._there(member, turn_id)
        if not there.worker:
            if begins:
                raise WorkerAway(f"No worker serves the pool {pool!r} now.")
            return None
        if begins:
            self._known()[self._name(member, turn_id)] = there
        work = WorktreeWork(folder=shared_cwd(shared), member=member, turn=turn_id, ask=FindWorktree())
        found = self._folders.desk(there).ask(work, FoundWorktree)
        self._folders.check_own(there, found.shared)
        return self._worktree(there, work, found)

    def found(self, member: str, turn_id: str = "") -> RemoteWorktree | None:
        """Return a worktree that was made, or is half made; None if there is none."""
        there = self._there(member, turn_id)
        work = WorktreeWork(member=member, turn=turn_id, ask=FindWorktree())
        if not there.worker:
            return None
        try:
            found = self._folders.desk(there).ask(work, FoundWorktree)
        except NoOwnWorkspace:
            return None
        return self._worktree(there, work, found) if found.is_known else None

    def all(self) -> list[Worktree]:
        """Return all that were made, or are half made, on workers that are there."""
        worktrees: list[Worktree] = []
        for there in dict.fromkeys(self._known().values()):
            with suppress(WorkerAway, WorkerRefused):
                for found in self._folders.desk(there).ask(
                    WorktreeWork(ask=ListWorktrees()), tuple[FoundWorktree, ...]
                ):
                    work = WorktreeWork(member=found.state.member, turn=found.turn, ask=FindWorktree())
                    worktrees.append(self._worktree(there, work, found))
        return worktrees

    def folder(self, member: str, shared: Path, turn_id: str = "") -> Path:
        """Return where an agent works in its worktree; its worker knows where that is."""
        return own_folder(shared, member, turn_id)

    def why_not(self, shared: Path) -> str:
        """Return nothing: its worker says it when a turn begins."""
        del shared
        return ""

    def is_of(self, folder: Path, member: str) -> bool:
        """Return whether a folder is the worktree of a member, and not one for a turn only."""
        return is_worktree(folder) and folder.name == self._name(member, "")

    def is_of_another(self, folder: Path) -> bool:
        """Return whether a folder is in a worktree of another conversation, or is its alone after a fork."""
        return self._folders.is_of_another(folder) or self._is_in_another(folder)

    def _is_in_another(self, folder: Path) -> bool:
        ours = own_path(Path(), self._id, "").parent.name
        parts = folder.parts
        return any(
            parts[at : at + 2] == (HOME, FOLDER) and parts[at + 2 : at + 3] != (ours,) for at in range(len(parts))
        )

    def _worktree(self, there: There, work: WorktreeWork, found: FoundWorktree) -> RemoteWorktree:
        return RemoteWorktree(self._folders, there, work, found)

    def _there(self, member: str, turn_id: str) -> There:
        """Return the worker that has a worktree: the one on which it was used last, else the one of its pool."""
        pool = self._pools.get(member, "")
        return self._known().get(self._name(member, turn_id)) or There(pool, self._folders.worker_of(pool))

    def _known(self) -> dict[str, There]:
        if self._where is None:
            folders = [Path(record.changes.folder) for record in self._store.changes(self._id, patches=False)]
            self._where = {
                folder.name: read_folder(folder)[0]
                for folder in folders
                if is_worktree(folder) and not self._is_in_another(folder)
            }
        return self._where

    def _name(self, member: str, turn_id: str) -> str:
        if turn_id:
            return candidate_path(Path(), self._id, member, turn_id).name
        return own_path(Path(), self._id, member).name


def is_worktree(folder: Path) -> bool:
    """Return whether a folder on a worker is a worktree there."""
    return folder.parts[-4:-2] == (HOME, FOLDER)
