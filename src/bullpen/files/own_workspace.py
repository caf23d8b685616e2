"""OwnWorkspace: the worktree of one agent, and what of it is in the shared folder already; also after a crash."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import FilesError, FilesNotKept, NoOwnWorkspace
from bullpen.files.compare import is_tree
from bullpen.files.conflict_marks import still_marked
from bullpen.files.git import GitFailed
from bullpen.files.own_paths import own_path
from bullpen.files.place import find_place
from bullpen.files.workspace import FolderSnapshots, Workspace
from bullpen.files.worktree import (
    follow_head,
    has_own_commits,
    is_worktree,
    make_worktree,
    remove_worktree,
    why_no_worktree,
)

STATE = ".json"


class OwnState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a worktree; written before anything is done with it."""

    member: str
    shared: str
    """The root of the folder that it is a copy of."""
    base: str = ""
    """The id of all its files when the shared folder had everything that is in them."""
    is_made: bool = False
    seen: str = ""
    """The id of all its files when they were last looked at."""
    is_unseen: bool = False
    """Whether a turn has begun since then."""
    head: str = ""
    """The commit that it was brought to last."""
    syncing: str = ""
    """The id of the files that are being brought into it."""
    merging: str = ""
    """The id of its files that are being brought into the shared folder."""
    turn: str = ""
    """The last turn that worked here."""
    is_fork: bool = False
    """Whether it is not of an agent, but has the files that a conversation was forked with."""
    is_apart: bool = False
    """Whether a person wants what is in it to stay there."""
    question: str = ""
    """What an agent is to be asked that resolves the conflict of the last merge."""
    resolver: str = ""
    """Who that is."""
    marked: tuple[str, ...] = ()
    """The files of the shared folder into which both versions were put then."""


class OwnWorkspace:
    """The worktree of one agent in one conversation. Everything here blocks."""

    def __init__(self, snapshots: FolderSnapshots, path: Path, member: str, shared: Path) -> None:
        self.path = path
        self.member = member
        self.shared = snapshots.workspace(shared).root
        self._snapshots = snapshots
        self._file = path.with_name(path.name + STATE)

    @classmethod
    def found(cls, snapshots: FolderSnapshots, path: Path) -> "OwnWorkspace | None":
        """Return a worktree that was made, or is half made; None if there is none."""
        state = read_state(path.with_name(path.name + STATE))
        return None if state is None else cls(snapshots, path, state.member, Path(state.shared))

    # What is known of it

    @property
    def state(self) -> OwnState:
        """What is known of it."""
        return read_state(self._file) or OwnState(member=self.member, shared=str(self.shared))

    def note(self, **changed: object) -> None:
        """Write what is known of it from now on; raises NoOwnWorkspace if that is not possible."""
        if "seen" in changed:
            changed.setdefault("is_unseen", False)
        new = self._file.with_name(self._file.name + ".new")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with new.open("wb") as file:
                file.write(msgspec.json.encode(replace(self.state, **changed)))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._file)
        except OSError as error:
            raise NoOwnWorkspace(self.member, f"{self._file} cannot be written: {error.strerror}.") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody else change it: what a cancelled turn began may not have ended yet."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path.with_name(f"{self.path.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @property
    def exists(self) -> bool:
        """Whether there is a worktree, and an agent may have worked in it."""
        return self.state.is_made and is_worktree(find_place(self.shared), self.path)

    @property
    def workspace(self) -> Workspace:
        """Its files."""
        return self._snapshots.workspace(self.path)

    @property
    def shared_workspace(self) -> Workspace:
        """The folder that the agent has in common with others."""
        return self._snapshots.workspace(self.shared)

    def look(self) -> str:
        """Return the id of all its files; if somebody has removed it, as they were when they were last looked at.

        Raises NoOwnWorkspace if that cannot be known.
        """
        return self._look() if self.exists else self.state.seen

    def _look(self) -> str:
        found = self.workspace.snapshot()
        if not is_tree(found.id):
            raise NoOwnWorkspace(self.member, f"what is in {self.path} is not known. {found.note}")
        return found.id

    def has_unmerged_work(self) -> bool:
        """Return whether something in it is not in the shared folder."""
        return self.look() != self.state.base

    def still_marked(self, files: Iterable[str]) -> tuple[str, ...]:
        """Return which of these files of the shared folder still have both versions in them."""
        return still_marked(self.shared, files)

    # Before a turn

    def bring_up_to_date(self, tree: str, cwd: Path) -> str:
        """Bring all files of the shared folder into it, if it holds no work of its own; return the id of its files.

        `tree` is the id of the files of the shared folder; `cwd`, where in the worktree the agent works. Raises
        NoOwnWorkspace or another FilesError.
        """
        if reason := why_no_worktree(self.shared):
            raise NoOwnWorkspace(self.member, f"{reason}.")
        if find_place(self.shared).root != self.shared:
            raise NoOwnWorkspace(self.member, f"git ignores {self.shared}, so a worktree would not have its files.")
        if not is_tree(tree):
            raise NoOwnWorkspace(self.member, f"only names and sizes of the files in {self.shared} can be known.")
        try:
            with self.locked():
                self.complete()
                found = self._brought(tree) if self.exists else self._made(tree)
                cwd.mkdir(parents=True, exist_ok=True)
        except (GitFailed, OSError) as error:
            raise NoOwnWorkspace(self.member, f"{error}.") from error
        return found

    def complete(self) -> None:
        """Complete what was begun to bring files into it when bullpen was killed."""
        state = self.state
        if state.syncing and self.exists:
            self._bring(state.base, state.syncing)

    def _made(self, tree: str) -> str:
        """Make the worktree. If somebody has removed one with work in it, that work is in it again."""
        state = self.state
        if state.is_made and self.path.is_dir():
            # Its repository does not know it any more, but what is in it may be work.
            self.path.rename(self.path.with_name(f"{self.path.name}.left-{time.time_ns()}"))
        self.note(is_made=False, syncing="")
        lost = state.seen if state.seen != state.base else ""
        head = make_worktree(find_place(self.shared), self.path)
        self.workspace.fill(lost or tree)
        self.note(head=head)
        self._follow(head)
        found = self._look()
        self.note(base=state.base if lost else found, seen=found, is_made=True)
        return found

    def _brought(self, tree: str) -> str:
        now, state = self.look(), self.state
        if now != state.base:
            self.note(seen=now)
            return now
        if now != tree:
            now = self._bring(now, tree)
        self._follow(state.head)
        self.note(seen=now)
        return now

    def _bring(self, before: str, tree: str) -> str:
        self.note(syncing=tree)
        changes = self.workspace.compare(before, tree)
        if changes.note and not changes.files:
            raise FilesNotKept(self.path, changes.note)
        self.workspace.apply(changes.files, back=False)
        # Not the tree itself: what git ignores here, but not there, is in neither.
        found = self.look()
        self.note(base=found, seen=found, syncing="")
        return found

    def _follow(self, ours: str) -> None:
        """Bring its commit and its index to those of the shared folder, so that git says the same in both."""
        with contextlib.suppress(GitFailed):
            self.note(head=follow_head(find_place(self.shared), self.path, ours))

    # Its end

    def remove(self) -> None:
        """Remove it, with everything in it."""
        own = find_place(self.path)
        # Somebody may have removed the shared folder, which may be a worktree itself.
        place = own if own.root == self.path and own.common_dir is not None else find_place(self.shared)
        kept = self.workspace if is_worktree(place, self.path) else None
        remove_worktree(place, self.path)
        if kept is not None:
            kept.remove()
        self._file.unlink(missing_ok=True)


def own_paths(home: Path, conversation_id: str) -> list[Path]:
    """Return where the worktrees of a conversation are, also those that are half made."""
    folder = own_path(home, conversation_id, "").parent
    files = sorted(folder.glob(f"*{STATE}")) if folder.is_dir() else ()
    return [file.with_name(file.name.removesuffix(STATE)) for file in files]


def own_workspaces(home: Path, conversation_id: str) -> Iterator[OwnWorkspace]:
    """Yield the worktrees that the agents of a conversation have, also those that are half made."""
    snapshots = FolderSnapshots(home)
    for path in own_paths(home, conversation_id):
        if (own := OwnWorkspace.found(snapshots, path)) is not None:
            yield own


def unmerged_work(home: Path, conversation_id: str) -> list[OwnWorkspace]:
    """Return the worktrees that hold something that is not in the shared folder: files or commits."""
    return [own for own in own_workspaces(home, conversation_id) if _holds_work(own)]


def remove_own_workspaces(home: Path, conversation_id: str) -> None:
    """Remove all worktrees of a conversation."""
    # Those of agents in a fork with files are worktrees of its own one.
    for own in sorted(own_workspaces(home, conversation_id), key=lambda own: own.state.is_fork):
        own.remove()
    shutil.rmtree(own_path(home, conversation_id, "").parent, ignore_errors=True)


def read_state(file: Path) -> OwnState | None:
    """Return what is known of a worktree; None if nothing is."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=OwnState)
    except (OSError, msgspec.MsgspecError):
        return None


def _holds_work(own: OwnWorkspace) -> bool:
    try:
        return own.has_unmerged_work() or has_own_commits(own.path, own.state.head)
    except (FilesError, OSError):
        return True
