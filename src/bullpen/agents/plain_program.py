"""PlainProgram: a program that we start ourselves, where there cannot be a guardian."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from bullpen.agents import process_tree

# How often we list a program's descendants: often at first, then at this interval. One that moves to a session of its
# own and clears its environment can be recognised only while its parent is alive.
FIRST_SCAN_SECONDS = 0.02
SCAN_SECONDS = 0.5


class PlainProgram:
    """Our own child. What it leaves is found by parent, by session, and by the turn's id in the environment."""

    guardian_pid: int | None = None

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdio: Sequence[int], turn_id: str
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._turn_id = turn_id
        stdin, stdout, stderr = stdio
        self._process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
        self.pid = self._process.pid
        self.exited = self._watch_exit()
        self._family: set[process_tree.ProcessId] = set()
        self._next_scan = self._loop.call_later(FIRST_SCAN_SECONDS, self._scan, FIRST_SCAN_SECONDS)

    async def end_rest(self) -> None:
        """End what the program has left, after its own end, and wait for that."""
        self._next_scan.cancel()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        await process_tree.end_until_gone(self._turn_id, self._family)

    def _scan(self, delay: float) -> None:
        """Remember the program's current descendants, and scan again later."""
        self._family.update(process_tree.descendants(self.pid))
        later = min(2 * delay, SCAN_SECONDS)
        self._next_scan = self._loop.call_later(later, self._scan, later)

    def _watch_exit(self) -> "asyncio.Future[int]":
        exited: asyncio.Future[int] = self._loop.create_future()

        def wait() -> None:
            code = self._process.wait()
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(exited.set_result, code)

        threading.Thread(target=wait, name=f"wait for {self.pid}", daemon=True).start()
        return exited
