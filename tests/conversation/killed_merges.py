"""An agent's own workspace is made, brought up to date and merged by a process that dies at one step; then completed.

A step is anything that changes the disk: a program that is started, a file that is renamed, removed or written through.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.files.stage import repository, write

from bullpen.conversation import merging
from bullpen.conversation.file_history import FileHistory, files_home
from bullpen.conversation.owner import owned
from bullpen.errors import ConversationInUse
from bullpen.files.own_paths import own_path
from bullpen.files.own_workspace import OwnWorkspace, remove_own_workspaces, unmerged_work
from bullpen.files.workspace import FolderSnapshots
from bullpen.store.sqlite import SqliteStore

LINES = "".join(f"line {number}\n" for number in range(9)).encode()
BEFORE = {"a.txt": LINES, "b.txt": b"b\n", "folder/c.txt": b"c\n"}
OF_KIM = {"a.txt": LINES.replace(b"line 8", b"of kim"), "kim.txt": b"untracked\n"}
OF_ANN = {"a.txt": LINES.replace(b"line 1", b"of ann"), "folder/new.txt": b"new\n"}
MERGED = {
    "a.txt": LINES.replace(b"line 1", b"of ann").replace(b"line 8", b"of kim"),
    "b.txt": b"b\n",
    "folder/c.txt": b"c\n",
    "folder/new.txt": b"new\n",
    "kim.txt": b"untracked\n",
}
CONVERSATION, TURN = "calm-fox-000001", "1"
DEAD = 77
MOST_WAITS = 600


class Site:
    """A repository, and a database with a conversation in which turn 1 is of ann."""

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo", BEFORE)
        self.db = folder / "talk.db"
        with SqliteStore(self.db) as store:
            store.create(CONVERSATION, team="t", team_file="", started_at=1)

    def opened(self, work: Callable[["Opened"], None]) -> None:
        with SqliteStore(self.db) as store, owned(store, CONVERSATION) as owner:
            home = files_home(store)
            assert home is not None
            snapshots = FolderSnapshots(home, not_looked_at=(self.db,))
            own = OwnWorkspace(snapshots, own_path(home, CONVERSATION, "ann"), "ann", self.root)
            work(Opened(FileHistory.here(store, CONVERSATION, owner, snapshots), own, home))

    def files(self) -> dict[str, bytes]:
        paths = (path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths}

    def worktrees(self) -> list[str]:
        known = self.root / ".git" / "worktrees"
        return sorted(one.name for one in known.iterdir()) if known.is_dir() else []


class Opened:
    """What works on it while the database is open."""

    def __init__(self, history: FileHistory, own: OwnWorkspace, home: Path) -> None:
        self.history, self.own, self.home = history, own, home

    def bring_up_to_date(self) -> None:
        shared = self.history.snapshots.workspace(self.own.shared)
        self.own.bring_up_to_date(shared.snapshot().id, self.own.path)

    def work(self) -> None:
        """Do what a turn of ann does; again, if it was done before, changes nothing."""
        self.own.note(turn=TURN)
        now = (self.own.path / "a.txt").read_bytes()
        write(self.own.path, {**OF_ANN, "a.txt": now.replace(b"line 1\n", b"of ann\n")})

    def merge(self) -> merging.Brought:
        return merging.bring(self.history, self.own, turn_id="", at=1)

    def complete(self) -> None:
        self.history.complete()
        merging.complete(self.own, self.history.of_turn(""))

    def prepare(self, site: Site) -> None:
        """Make the worktree, bring it up to date twice, and let ann and kim work."""
        self.bring_up_to_date()
        write(site.root, OF_KIM)
        self.bring_up_to_date()
        self.work()

    def whole(self, site: Site) -> None:
        """Do the same, and merge."""
        self.prepare(site)
        self.merge()


def steps_of(site: Site, *, only_merge: bool = False) -> int:
    """Return how many steps there are in all, or in the merge."""
    if only_merge:
        site.opened(lambda opened: opened.prepare(site))
    return steps_in(lambda: site.opened(lambda opened: _play(opened, site, only_merge)))


def steps_in(work: Callable[[], object]) -> int:
    """Do something, and return how many steps that took."""
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += 1

    before = _patched(count)
    try:
        work()
    finally:
        _restore(before)
    return counted


def _play(opened: Opened, site: Site, only_merge: bool) -> None:
    opened.merge() if only_merge else opened.whole(site)


def wait_for_its_children(db: Path, conversation_id: str) -> None:
    """Wait until nothing is left of a killed process: what it was about to start holds its lock for a moment."""
    for _ in range(MOST_WAITS):
        try:
            with SqliteStore(db) as store, owned(store, conversation_id):
                return
        except ConversationInUse:
            time.sleep(0.05)


def killed_at(site: Site, step: int, *, only_merge: bool = False) -> bool:
    """Do everything, or only the merge, in a process that dies at one step; return whether it did."""
    if only_merge:
        site.opened(lambda opened: opened.prepare(site))
    child = os.fork()
    if child == 0:
        try:
            die_at(step)
            site.opened(lambda opened: _play(opened, site, only_merge))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, DEAD), code
    wait_for_its_children(site.db, CONVERSATION)
    return code == DEAD


def completed(site: Site, *, only_merge: bool = False) -> None:
    """Open it again, as bullpen does; unless only the merge was killed, let ann's turn be done again."""

    def again(opened: Opened) -> None:
        opened.complete()
        if only_merge:
            assert opened.merge().conflicts == ()
            opened.bring_up_to_date()
            return
        write(site.root, {"kim.txt": OF_KIM["kim.txt"]})
        if b"of kim" not in (site.root / "a.txt").read_bytes():
            write(site.root, {"a.txt": (site.root / "a.txt").read_bytes().replace(b"line 8", b"of kim")})
        opened.bring_up_to_date()
        opened.work()
        brought = opened.merge()
        assert brought.conflicts == ()
        assert not unmerged_work(opened.home, CONVERSATION)

    site.opened(again)


def removed(site: Site) -> None:
    """Remove all worktrees, as when the conversation is deleted."""
    site.opened(lambda opened: remove_own_workspaces(opened.home, CONVERSATION))


def die_at(step: int) -> None:
    """Let this process die at one of the next steps."""
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(DEAD)

    _patched(count)


_STEPS: tuple[tuple[Any, str], ...] = (
    *((os, name) for name in ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "symlink")),
    (subprocess, "Popen"),
)


def _patched(count: Callable[[], None]) -> list[tuple[Any, str, Any]]:
    before = [(module, name, getattr(module, name)) for module, name in _STEPS]
    for module, name, function in before:
        setattr(module, name, _counted(function, count))
    return before


def _counted(function: Any, count: Callable[[], None]) -> Any:
    if isinstance(function, type):

        class Counted(function):  # type: ignore[misc]
            def __init__(self, *given: Any, **named: Any) -> None:
                count()
                super().__init__(*given, **named)

        return Counted

    def counted(*given: Any, **named: Any) -> Any:
        count()
        return function(*given, **named)

    return counted


def _restore(before: list[tuple[Any, str, Any]]) -> None:
    for module, name, function in before:
        setattr(module, name, function)
