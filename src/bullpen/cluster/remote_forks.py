"""RemoteFilesToFork: the files of a conversation on workers, brought into worktrees there for a fork."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from bullpen.cluster.errands import There, is_there
from bullpen.cluster.folder_names import folder_at, read_folder
from bullpen.cluster.node import Node
from bullpen.cluster.remote_files import WorkerDesk
from bullpen.cluster.remote_worktrees import is_worktree
from bullpen.cluster.worktree_work import (
    FindWorktree,
    FoundWorktree,
    MakeFork,
    RemoveWorktree,
    WorktreeAsk,
    WorktreeWork,
)
from bullpen.conversation.files_to_fork import FindFiles, files_after, name_of
from bullpen.conversation.forked_files import ForkedFiles
from bullpen.errors import BullpenError, FilesError, NoOwnWorkspace, WorkerAway
from bullpen.routing.progress import Progress
from bullpen.store.base import Store

T = TypeVar("T")

CANNOT = "The files in {} cannot be forked: {} Nothing was written."


def finding_files(node: Node) -> FindFiles:
    """Return what finds the files of conversations on workers; it may be called in any thread but the present one."""
    return partial(RemoteFilesToFork, node, asyncio.get_running_loop())


class RemoteFilesToFork:
    """Files on workers, to be forked. Of each pool, those on the worker that the conversation used then."""

    def __init__(
        self, node: Node, loop: asyncio.AbstractEventLoop, store: Store, conversation_id: str, last: int
    ) -> None:
        progress = msgspec.convert(store.conversation(conversation_id).progress, Progress)
        forked = ForkedFiles({folder: Path(worktree) for folder, worktree in progress.forked.items()})
        is_other = partial(_is_other, _used_workers(store, conversation_id, last))
        trees = files_after(store, conversation_id, last, forked, is_other)
        for folder in trees:
            there, _ = read_folder(Path(folder))
            if not is_there(node, there):
                raise BullpenError(CANNOT.format(folder, WorkerAway.of(there.worker, there.pool)))
        self.original = forked.original
        self._node = node
        self._loop = loop
        self._id = conversation_id
        self._fork_id = ""
        self._trees = {Path(folder): tree for folder, tree in trees.items()}
        self._planned: dict[Path, Path] = {}
        self._begun: list[Path] = []

    def plan(self, fork_id: str) -> dict[str, str]:
        """Ask the workers where the worktrees will be: the fork is bound to them."""
        self._fork_id = fork_id
        found = {folder: self._ask(folder, FindWorktree(), FoundWorktree) for folder in self._trees}
        self._planned = {folder: folder_at(read_folder(folder)[0], one.path) for folder, one in found.items()}
        return {str(folder): str(worktree) for folder, worktree in self._planned.items()}

    def make(self) -> dict[str, Path]:
        """Make the worktrees, and return them by the folders; raises BullpenError."""
        for folder, tree in self._trees.items():
            self._begun.append(folder)
            self._ask(folder, MakeFork(tree, self._id), str)
        return {str(folder): worktree for folder, worktree in self._planned.items()}

    def remove(self) -> None:
        """Remove what there is of them. A worker that is away does that when it knows that the fork was deleted."""
        for folder in self._begun:
            with suppress(BullpenError):
                self._ask(folder, RemoveWorktree(), type(None))

    def _ask(self, folder: Path, ask: WorktreeAsk, kind: type[T]) -> T:
        there, path = read_folder(folder)
        work = WorktreeWork(folder=path, member=name_of(Path(path)), ask=ask)
        try:
            return WorkerDesk(self._node, self._loop, self._fork_id, there).ask(work, kind)
        except FilesError as error:
            reason = error.reason if isinstance(error, NoOwnWorkspace) else error
            raise BullpenError(CANNOT.format(folder, reason)) from error


def _is_other(used: Collection[There], folder: str) -> bool:
    """Return whether a folder is not forked: a worktree of an agent, or on a worker that is not used.

    Folders on no worker were recorded before the conversation was moved to a server.
    """
    path = Path(folder)
    return path.is_absolute() or is_worktree(path) or read_folder(path)[0] not in used


def _used_workers(store: Store, conversation_id: str, last: int) -> set[There]:
    """Return which worker of each pool had the files of a conversation after a message, or had them first."""
    used: dict[str, There] = {}
    for record in store.changes(conversation_id, patches=False):
        there, _ = read_folder(Path(record.changes.folder))
        if record.after_message <= last:
            used[there.pool] = there
        else:
            used.setdefault(there.pool, there)
    return set(used.values())
