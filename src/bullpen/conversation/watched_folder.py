"""WatchedFolder: a folder in which turns may change files, and who may do so now."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from bullpen.file_changes import ChangeRecord
from bullpen.files.folders import Files
from bullpen.files.snapshot import LeftOut, Snapshot


class WatchedFolder:
    """A folder in which turns may change files."""

    def __init__(self, workspace: Files, known: str) -> None:
        self.workspace = workspace
        self.known = known
        """The id of all files as they were last seen; empty: never."""
        self.left_out: tuple[LeftOut, ...] = ()
        """What was not in it."""
        self.at_work: dict[str, ChangeRecord] = {}
        """The begun records of the turns that run there, by their ids."""
        self.last_looks: set[asyncio.Task[ChangeRecord | None]] = set()
        """Those at what turns have changed that have ended."""
        self.merges: set[asyncio.Task[Any]] = set()
        """Those that bring the work of agents with workspaces of their own into it."""
        self.checks: set[asyncio.Task[None]] = set()
        """Those that check what turns have changed."""
        self.writing = asyncio.Lock()
        """Held while that happens, and while somebody must see all of it or nothing."""
        self._turns: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def seen(self, now: Snapshot) -> None:
        """Note what all files are now."""
        self.known, self.left_out = now.id, now.left_out

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self.workspace.root)

    async def enter(self, turn_id: str) -> None:
        """Let a turn change files there, as soon as everything is there that was merged before."""
        while self.last_looks or self.merges or self.checks:
            await all_of([*self.last_looks, *self.merges, *self.checks])
        self._turns.add(turn_id)
        self._idle.clear()

    def leave(self, turn_id: str) -> None:
        """Note that a turn changes no files any more, and that it is known what it did."""
        self._turns.discard(turn_id)
        if not self._turns:
            self._idle.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Write there while no turn and no check may change files. No turn enters while a merge waits."""
        while True:
            await self._idle.wait()
            async with self.writing:
                if self._idle.is_set():
                    yield
                    return

    @asynccontextmanager
    async def checking(self, turn_id: str) -> AsyncIterator[None]:
        """Run checks there while no turn and no other check may change files, and nothing is merged."""
        async with self.alone():
            self._turns.add(turn_id)
            self._idle.clear()
        try:
            yield
        finally:
            self.leave(turn_id)


async def all_of(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Wait for tasks, however they end. They continue if the one who waits is cancelled."""
    if waiting := list(tasks):
        await asyncio.wait(waiting)
