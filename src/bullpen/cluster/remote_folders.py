"""RemoteFolders: the folders of a conversation's agents that are on workers, and which worker has which."""

import asyncio
import hashlib
from pathlib import Path
from threading import Lock

import msgspec

from bullpen.cluster.errands import There, is_there
from bullpen.cluster.file_work import FileWork, FindRoot
from bullpen.cluster.folder_names import read_folder
from bullpen.cluster.node import KnownWorker, Node
from bullpen.cluster.remote_files import RemoteFiles, WorkerDesk
from bullpen.cluster.worker_places import LOST
from bullpen.conversation.forked_files import ForkedFiles
from bullpen.errors import FilesNotKept, WorkerAway, WorkerRefused
from bullpen.routing.progress import Progress
from bullpen.store.base import Store


class RemoteFolders:
    """What is kept on workers of the folders of one conversation."""

    def __init__(self, node: Node, conversation_id: str, store: Store) -> None:
        self._node = node
        self._id = conversation_id
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._workers: dict[str, str] = {}
        """For each pool, the worker that the conversation uses."""
        self._known: set[str] = set()
        """The pools of which it was looked up which worker had a folder last."""
        self._using: dict[Path, Lock] = {}
        self._roots: dict[tuple[There, str], str] = {}
        self.forked = ForkedFiles({})
        """Those with whose files the conversation was forked, and the worktrees that have them."""

    def worker_of(self, pool: str) -> str:
        """Return the worker that the conversation uses in a pool; empty: any."""
        return self._workers.get(pool, "")

    async def choose(self, pool: str, cwd: str) -> tuple[str, str]:
        """Use the worker that had the conversation's files last, or if it is away another one that has the folder.

        Nobody else has the files of a fork. Return its name, and that of the one that is away, if there is one; empty:
        no worker serves the pool, or the one of a fork is away.
        """
        if pool not in self._known:
            self._workers[pool] = self.fork_on(pool) or await asyncio.to_thread(self._last_worker, pool)
            self._known.add(pool)
        before = self._workers[pool]
        if before and is_there(self._node, There(pool, before)):
            return before, ""
        workers = self._node.workers(pool)
        if not workers or self.fork_on(pool):
            return "", before
        # Others for other conversations, and the same one on every node.
        chosen = min([one for one in workers if one.announced.has_folder(cwd)] or workers, key=self._order).name
        self._workers[pool] = chosen
        return chosen, before

    async def start(self) -> None:
        """Learn which folders were forked with the conversation."""
        stored = await asyncio.to_thread(self._store.conversation, self._id)
        forked = msgspec.convert(stored.progress, Progress).forked
        self.forked.places = {folder: Path(worktree) for folder, worktree in forked.items()}

    def fork_on(self, pool: str) -> str:
        """Return the worker of a pool that has the files with which the conversation was forked; empty: none."""
        return next((there.worker for there, _ in self._forked() if there.pool == pool), "")

    def forked_there(self, there: There) -> tuple[str, ...]:
        """Return the folders on a worker with whose files the conversation was forked."""
        return tuple(path for where, path in self._forked() if where == there)

    def is_of_another(self, folder: Path) -> bool:
        """Return whether a folder is on another worker than the files of a fork: those of the other conversation."""
        there, _ = read_folder(folder)
        return self.fork_on(there.pool) not in ("", there.worker)

    def _forked(self) -> list[tuple[There, str]]:
        return [read_folder(Path(folder)) for folder in self.forked.places]

    def _order(self, worker: KnownWorker) -> bytes:
        return hashlib.sha256(f"{self._id} {worker.name}".encode()).digest()

    def _last_worker(self, pool: str) -> str:
        for record in reversed(self._store.changes(self._id, patches=False)):
            there, _ = read_folder(Path(record.changes.folder))
            if there.pool == pool:
                return there.worker
        return ""

    # Blocking, in any thread but that of the event loop

    def workspace(self, folder: Path) -> RemoteFiles:
        """Return the files that a folder belongs to; raises WorkerAway, or WorkerRefused."""
        there, path = read_folder(folder)
        if folder.is_absolute():
            raise FilesNotKept(folder, "it is in no pool, and only workers keep what files were")
        if there.worker:
            return self._files(there, path)
        there = There(there.pool, self.worker_of(there.pool))
        if not there.worker:
            raise WorkerAway(f"No worker serves the pool {there.pool!r} now.")
        return self._files(there, self._root(there, path))

    def desk(self, there: There) -> WorkerDesk:
        """Return what does things on a worker."""
        return WorkerDesk(self._node, self._loop, self._id, there)

    def lock_of(self, folder: Path) -> Lock:
        """Return what somebody holds who does several things with a folder."""
        return self._using.setdefault(folder, Lock())

    def let_go(self) -> None:
        """Workers keep what they have."""

    def _root(self, there: There, path: str) -> str:
        if (there, path) not in self._roots:
            root = self.desk(there).ask(FileWork(folder=path, ask=FindRoot()), str)
            self.check_own(there, root)
            self._roots[there, path] = root
        return self._roots[there, path]

    def check_own(self, there: There, root: str) -> None:
        """Raise WorkerRefused if a worker takes the folder itself for the files that a fork has of it."""
        if root in self.forked_there(there):
            raise WorkerRefused(f"The worker {there.worker} does not do this: {LOST.format(root)}.")

    def _files(self, there: There, root: str) -> RemoteFiles:
        return RemoteFiles(self.desk(there), root)
