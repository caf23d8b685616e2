"""PsutilTable: processes where there is no /proc, such as on macOS."""

import os

import psutil

from bullpen.agents.processes.table import ProcessState


class PsutilTable:
    """Asks psutil. Start times are microseconds since 1970, so they differ after every boot."""

    def state(self, pid: int) -> ProcessState | None:
        """Return the state of a process, including zombies."""
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                start_time = round(process.create_time() * 1_000_000)
                is_zombie = process.status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            return None
        return ProcessState(start_time=start_time, session=_session(pid), is_zombie=is_zombie)

    def children(self, pid: int) -> list[int]:
        """Return the children of a process."""
        return self._below(pid, recursive=False)

    def descendants(self, pid: int) -> list[int]:
        """Return the children of a process, their children, and so on."""
        return self._below(pid, recursive=True)

    def all(self) -> list[int]:
        """Return every process of this machine."""
        return psutil.pids()

    def has_variable(self, pid: int, name: str, value: str) -> bool:
        """Return whether a process was started with this variable in its environment."""
        try:
            return psutil.Process(pid).environ().get(name) == value
        except (psutil.Error, OSError):
            return False

    def _below(self, pid: int, *, recursive: bool) -> list[int]:
        # One scan of all processes, also for grandchildren.
        try:
            return [process.pid for process in psutil.Process(pid).children(recursive=recursive)]
        except psutil.Error:
            return []


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
