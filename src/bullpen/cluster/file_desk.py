"""FileDesk: does with files on a worker what nodes ask for, in the folders of its own file and nowhere else."""

import logging
from collections.abc import Collection, Iterable
from pathlib import Path
from threading import Condition, Lock

import msgspec

from bullpen.agents.check_run import CheckRun, run_check
from bullpen.cluster.file_work import (
    Apply,
    CheckWork,
    Compare,
    Differs,
    DigestPrograms,
    FileAnswer,
    FileWork,
    FindPlaces,
    FindRoot,
    ListChanged,
    Merge,
    ReadContents,
    TakeSnapshot,
    TreeWith,
)
from bullpen.cluster.kept_for import KeptFor
from bullpen.cluster.worker_file import WorkerFile
from bullpen.cluster.worker_places import WorkerPlaces
from bullpen.cluster.worktree_desk import WorktreeDesk
from bullpen.cluster.worktree_work import MakeFork, WorktreeWork
from bullpen.conversation.check_places import place_in
from bullpen.errors import BullpenError, FilesDiffer, FilesFailed, FilesNotKept, NoOwnWorkspace, NotAllowedHere
from bullpen.file_changes import FileChange, FileState
from bullpen.files.compare import is_tree
from bullpen.files.holding import alone
from bullpen.files.own_workspace import remove_own_workspaces, unmerged_work
from bullpen.files.shrink import ids_in, shrink
from bullpen.files.workspace import FolderSnapshots, Workspace

logger = logging.getLogger(__name__)

MODES = ("100644", "100755", "120000")


class FileDesk:
    """What is kept of the folders of a worker. Everything here blocks, and may be called from any thread."""

    def __init__(self, file: WorkerFile, home: Path, cluster: str = "") -> None:
        self._file = file
        self._home = home
        self._snapshots = FolderSnapshots(home, not_looked_at=(home,))
        self.places = WorkerPlaces(file, home)
        self.kept = KeptFor(home, cluster)
        self._finding = Lock()
        self._using: dict[Path, Lock] = {}
        self._at_work = 0
        self._changed = Condition()

    def answer(self, conversation: str, work: FileWork | WorktreeWork) -> bytes:
        """Do something for a conversation, and return the packed answer: also why it was not done."""
        with self._changed:
            self._at_work += 1
        try:
            return msgspec.msgpack.encode(self._answer(conversation, work))
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def remove_unneeded(self, deleted: Collection[str]) -> int | None:
        """Remove what is kept for deleted conversations only; return how many bytes, None if that is not possible now.

        Work in their worktrees that is nowhere else stays there, and so does what is kept for it.
        """
        with self._changed:
            # Nobody begins anything while this is held.
            self._changed.wait_for(lambda: not self._at_work)
            over = [conversation for conversation in deleted if self._has_no_work(conversation)]
            for conversation in over:
                remove_own_workspaces(self._home, conversation)
            self._snapshots.let_go()
            self._snapshots = FolderSnapshots(self._home, not_looked_at=(self._home,))
            with alone(self._home) as is_alone:
                if not is_alone:
                    return None
                removed = shrink(self._home, *self.kept.told(but=over))
            for conversation in over:
                self.kept.forget(conversation)
            return removed

    def _has_no_work(self, conversation: str) -> bool:
        left = unmerged_work(self._home, conversation)
        for own in left:
            logger.warning("conversation deleted, work left conversation=%s path=%s", conversation, own.path)
        return not left

    def _answer(self, conversation: str, work: FileWork | WorktreeWork) -> FileAnswer:
        try:
            done = self._do(conversation, work)
            if not isinstance(done, bytes):
                self.kept.note(conversation, ids_in(msgspec.json.encode(done)))
            return FileAnswer(value=msgspec.msgpack.encode(done))
        except NotAllowedHere as error:
            return FileAnswer(problem="refused", reason=str(error))
        except FilesDiffer as error:
            return FileAnswer(problem="differ", paths=error.paths)
        except FilesNotKept as error:
            return FileAnswer(problem="not_kept", reason=error.reason)
        except FilesFailed as error:
            return FileAnswer(problem="failed", reason=error.reason)
        except NoOwnWorkspace as error:
            return FileAnswer(problem="no_worktree", reason=error.reason)
        except (BullpenError, OSError, ValueError) as error:
            logger.warning("not done with files folder=%s error=%s", work.folder, error)
            return FileAnswer(problem="failed", reason=str(error).rstrip("."))

    def _do(self, conversation: str, work: FileWork | WorktreeWork) -> object:
        if self._file.permissions == "read-only":
            raise NotAllowedHere('its permissions are "read-only", so no agent changes files there')
        if isinstance(work, WorktreeWork):
            self._make_home()
            if isinstance(work.ask, MakeFork):
                self.kept.copy(work.ask.original, conversation)
            worktrees = WorktreeDesk(self.places, self._snapshots)
            with self._alone(worktrees.path(conversation, work)):
                return worktrees.do(conversation, work)
        within, folder = self.places.place_of(conversation, work.folder)
        self._make_home()
        with self._finding:
            workspace = self._snapshots.workspace(folder, within=within)
        self.kept.note(conversation, [str(workspace.root)])
        if isinstance(work.ask, FindRoot):
            return str(workspace.root)
        if isinstance(work.ask, FindPlaces):
            return tuple(self._place(conversation, cwd, workspace.root) for cwd in work.ask.cwds)
        with self._alone(workspace.root):
            return _done(workspace, work)

    def _make_home(self) -> None:
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _alone(self, root: Path) -> Lock:
        """Do one thing after the other below a root, as an owner that has died may have ordered something, too."""
        with self._finding:
            return self._using.setdefault(root, Lock())

    def _place(self, conversation: str, cwd: str, root: Path) -> str:
        """Return where below a root somebody works whose folder a team file names; empty: nowhere."""
        state = self.places.state_of(root) if self.places.worktree_at(conversation, root) else None
        shared = root if state is None or state.is_fork else Path(state.shared)
        try:
            place = place_in(self.places.place_of(conversation, cwd)[1], root, shared)
        except NotAllowedHere:
            # Without a folder of its own, and where there are several, it runs where files were changed.
            place = root if Path(cwd) == Path() else None
        return "" if place is None or not place.is_dir() else str(place)

    async def check(self, conversation: str, work: CheckWork, run: CheckRun) -> None:
        """Run a check, if the worker's file lists its command; what came of it is in `run`, also if cancelled."""
        try:
            _, folder = self.places.place_of(conversation, work.folder)
            self._file.check_command(work.command)
        except NotAllowedHere as error:
            run.problem = f"Its worker does not run this check: {error}."
            return
        await run_check(work.command, cwd=folder, timeout=work.timeout, run=run)


def _done(workspace: Workspace, work: FileWork) -> object:
    match work.ask:
        case DigestPrograms(folders):
            return workspace.program_digests(folders)
        case TakeSnapshot():
            return workspace.snapshot()
        case Compare(before, after):
            return workspace.compare(before, after)
        case ListChanged(before, after):
            return workspace.changed(before, after)
        case TreeWith(tree, states):
            _check(state for _, state in states)
            return workspace.tree_with(tree, dict(states))
        case Differs(files, side):
            return workspace.differs(_checked(files), side)
        case Apply(files, back):
            workspace.apply(_checked(files), back=back)
            return None
        case Merge(base, ours, theirs):
            return workspace.merge(base, ours, theirs)
        case ReadContents(blob):
            return workspace.contents(blob)
        case _:
            raise NotAllowedHere(f"it does not know how to {type(work.ask).__name__}")


def _checked(files: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    _check(state for file in files for state in (file.old, file.new))
    return files


def _check(states: Iterable[FileState | None]) -> None:
    """Refuse what no snapshot has ever named: it would reach git as something else."""
    for state in states:
        if state is not None and (not is_tree(state.blob) or state.mode not in MODES):
            raise NotAllowedHere(f"{state.blob!r} with mode {state.mode!r} is not the state of a file")
