"""RemoteFiles: the files below one root on a worker, with the same few things to do as with those of this machine."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from bullpen.cluster.errands import There, run_errand
from bullpen.cluster.file_work import (
    Apply,
    Ask,
    Compare,
    Differs,
    DigestPrograms,
    FileAnswer,
    FileWork,
    FindPlaces,
    ListChanged,
    Merge,
    ReadContents,
    TakeSnapshot,
    TreeWith,
)
from bullpen.cluster.folder_names import folder_at, shared_cwd
from bullpen.cluster.node import Node
from bullpen.cluster.worktree_work import WorktreeWork
from bullpen.errors import (
    FilesDiffer,
    FilesError,
    FilesFailed,
    FilesNotKept,
    NoOwnWorkspace,
    WorkerAway,
    WorkerRefused,
)
from bullpen.file_changes import FileChange, FileState, FolderChanges
from bullpen.files.merge import Merged
from bullpen.files.snapshot import Snapshot

T = TypeVar("T")


class WorkerDesk:
    """One worker that does things with files for one conversation. Its answers are waited for in any other thread."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop, conversation_id: str, there: There) -> None:
        self.there = there
        self._node = node
        self._loop = loop
        self._id = conversation_id

    def ask(self, work: FileWork | WorktreeWork, kind: type[T]) -> T:
        """Have something done, and return the answer; a FilesError is raised if it was not."""
        errand = run_errand(self._node, self._id, self.there, work)
        packed = asyncio.run_coroutine_threadsafe(errand, self._loop).result()
        try:
            answer = msgspec.msgpack.decode(packed, type=FileAnswer)
            if answer.problem is None:
                return msgspec.msgpack.decode(answer.value, type=kind)
        except msgspec.MsgspecError as error:
            hint = "Are nodes and workers of the same version?"
            raise WorkerRefused(
                f"What the worker {self.there.worker} answers cannot be read: {error}. {hint}"
            ) from error
        raise self._problem(answer, work)

    def _problem(self, answer: FileAnswer, work: FileWork | WorktreeWork) -> FilesError:
        root = folder_at(self.there, work.folder)
        if answer.problem == "no_worktree" and isinstance(work, WorktreeWork):
            return NoOwnWorkspace(work.member, answer.reason)
        match answer.problem:
            case "differ":
                return FilesDiffer(root, answer.paths)
            case "failed":
                return FilesFailed(root, answer.reason)
            case "not_kept":
                return FilesNotKept(root, answer.reason)
            case _:
                worker = self.there.worker
                return WorkerRefused(f"The worker {worker} does not do this: {answer.reason}. Its own file decides.")


class RemoteFiles:
    """The files below one root on a worker. Everything here blocks."""

    def __init__(self, desk: WorkerDesk, root: str) -> None:
        self.root = folder_at(desk.there, root)
        self.path_there = root
        self._desk = desk
        self._places: dict[str, str] = {}

    def place_of(self, folder: Path) -> str:
        """Return where a folder of an agent below the root is on the worker, without links."""
        cwd = shared_cwd(folder)
        if cwd not in self._places:
            self._places[cwd] = self._ask(FindPlaces((cwd,)), tuple[str, ...])[0]
        return self._places[cwd] or self.path_there

    def snapshot(self) -> Snapshot:
        """Keep all files as they are now; never fails, and says in a note what is not known."""
        try:
            return self._ask(TakeSnapshot(), Snapshot)
        except FilesError as error:
            is_away = isinstance(error, WorkerAway)
            return Snapshot(id="", note=f"What is in {self.root} is not known: {error}", is_away=is_away)

    def program_digests(self, folders: Sequence[str] = ()) -> dict[str, str]:
        """Return what files are now that make programs run, also in these folders below the root; never fails."""
        try:
            return self._ask(DigestPrograms(tuple(folders)), dict[str, str])
        except FilesError:
            # The looks before and after a turn say that it is not known.
            return {}

    def compare(self, before: str, after: str) -> FolderChanges:
        """Return what changed between two snapshots, given by their ids; never fails, and says what is not known."""
        nothing = FolderChanges(folder=str(self.root), before=before, after=after)
        if before == after and before:
            return nothing
        try:
            return replace(self._ask(Compare(before, after), FolderChanges), folder=str(self.root))
        except FilesError as error:
            return replace(nothing, note=f"What changed in {self.root} is not known: {error}")

    def changed(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the files that differ between two snapshots with contents, none of them as renamed, and keep them."""
        return self._ask(ListChanged(before, after), tuple[FileChange, ...])

    def tree_with(self, tree: str, states: Mapping[bytes, FileState | None]) -> str:
        """Return the id of a snapshot in which some files are in other states."""
        return self._ask(TreeWith(tree, tuple(states.items())), str)

    def differs(self, files: Sequence[FileChange], side: Literal["old", "new"]) -> tuple[str, ...]:
        """Return the paths of the files that are not now as they were before ("old") or after ("new") a change."""
        return self._ask(Differs(tuple(files), side), tuple[str, ...])

    def apply(self, changes: Sequence[FileChange], *, back: bool) -> None:
        """Put files into their new states, or back to their old ones; can be called again after a crash."""
        self._ask(Apply(tuple(changes), back), type(None))

    def merge(self, base: str, ours: str, theirs: str) -> Merged:
        """Return what must change in ours so that it has what theirs changed since base."""
        return self._ask(Merge(base, ours, theirs), Merged)

    def contents(self, blob: str) -> bytes:
        """Return the contents of a file by its blob."""
        return self._ask(ReadContents(blob), bytes)

    def _ask(self, ask: Ask, kind: type[T]) -> T:
        return self._desk.ask(FileWork(folder=self.path_there, ask=ask), kind)
