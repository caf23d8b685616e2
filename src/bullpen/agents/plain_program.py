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
from bullpen.agents.processes.mark import mark

# How often we list a program's descendants: often at first, then at this interval. One that moves to a session of its
# own and clears its environment can be recognised only while its parent is alive.
FIRST_SCAN_SECONDS = 0.02
SCAN_SECONDS = 0.5


class PlainProgram:
    """Our own child. What it leaves is found by parent, by group, and by the turn's id in the environment."""

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
        # It has not read its prompt yet, so nobody has told it to start anything.
        mark(self.pid)
        self._may_be_reaped = False
        self._family: set[process_tree.ProcessId] = set()
        self._next_scan = self._loop.call_later(FIRST_SCAN_SECONDS, self._scan, FIRST_SCAN_SECONDS)
        try:
            self.exited = self._watch_exit()
        except BaseException:
            self.abandon()
            # It is killed, and nobody else waits for it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(process_tree.REAP_SECONDS)
            raise

    async def end_rest(self) -> bool:
        """End what the program has left, after its own end, and return whether nothing of it is left."""
        self._next_scan.cancel()
        self._end_group()
        return await process_tree.end_until_gone(self._turn_id, self._family)

    def abandon(self) -> None:
        """End the program and what it has started, as far as that is known, without waiting for that."""
        self._next_scan.cancel()
        self._family.update(process_tree.descendants(self.pid))
        self._end_group()
        process_tree.end(self._family)

    def _end_group(self) -> None:
        """Kill the program's group, and only then reap the program: until that, nobody else can get its pid."""
        is_reaped = self._process.returncode is not None
        self._may_be_reaped = True
        if is_reaped and process_tree.process_id(self.pid) is not None:
            # A stranger has it now, which cannot be while anything is left of the group.
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.poll()

    def _scan(self, delay: float) -> None:
        """Remember the program's current descendants, and scan again later."""
        self._family.update(process_tree.descendants(self.pid))
        later = min(2 * delay, SCAN_SECONDS)
        self._next_scan = self._loop.call_later(later, self._scan, later)

    def _watch_exit(self) -> "asyncio.Future[int]":
        exited: asyncio.Future[int] = self._loop.create_future()

        def wait() -> None:
            code = self._exit_code()
            if self._may_be_reaped:
                # It ends later than those who could wait for it.
                self._process.wait()
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(exited.set_result, code)

        threading.Thread(target=wait, name=f"wait for {self.pid}", daemon=True).start()
        return exited

    def _exit_code(self) -> int:
        """Wait for the program's end, and return its exit code without reaping it."""
        if not hasattr(os, "waitid"):
            # macOS before Python 3.13.
            return self._process.wait()
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            # It was ended and reaped before this thread came to wait for it.
            return self._process.wait()
        assert ended is not None  # noqa: S101, since it has waited
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
