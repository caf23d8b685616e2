"""FileDesk: does with files on a worker what nodes ask for, in the folders of its own file and nowhere else."""

import logging
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

import msgspec

from bullpen.agents.check_run import CheckRun, run_check
from bullpen.cluster.file_work import (
    Apply,
    CheckWork,
    Compare,
    Differs,
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
from bullpen.cluster.worker_file import WorkerFile
from bullpen.cluster.worker_places import WorkerPlaces
from bullpen.cluster.worktree_desk import WorktreeDesk
from bullpen.cluster.worktree_work import WorktreeWork
from bullpen.conversation.check_places import place_in
from bullpen.errors import BullpenError, FilesDiffer, FilesFailed, FilesNotKept, NoOwnWorkspace, NotAllowedHere
from bullpen.file_changes import FileChange, FileState
from bullpen.files.compare import is_tree
from bullpen.files.workspace import FolderSnapshots, Workspace

logger = logging.getLogger(__name__)

MODES = ("100644", "100755", "120000")


class FileDesk:
    """What is kept of the folders of a worker. Everything here blocks, and may be called from any thread."""

    def __init__(self, file: WorkerFile, home: Path) -> None:
        self._file = file
        self._home = home
        self._snapshots = FolderSnapshots(home, not_looked_at=home)
        self.places = WorkerPlaces(file, home)
        self._worktrees = WorktreeDesk(self.places, self._snapshots)
        self._finding = Lock()
        self._using: dict[Path, Lock] = {}

    def answer(self, conversation: str, work: FileWork | WorktreeWork) -> bytes:
        """Do something for a conversation, and return the packed answer: also why it was not done."""
        return msgspec.msgpack.encode(self._answer(conversation, work))

    def _answer(self, conversation: str, work: FileWork | WorktreeWork) -> FileAnswer:
        try:
            return FileAnswer(value=msgspec.msgpack.encode(self._do(conversation, work)))
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
            with self._alone(self._worktrees.path(conversation, work)):
                return self._worktrees.do(conversation, work)
        within, folder = self.places.place_of(conversation, work.folder)
        self._make_home()
        with self._finding:
            workspace = self._snapshots.workspace(folder, within=within)
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
        shared = root if state is None else Path(state.shared)
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
