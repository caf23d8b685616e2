"""PsutilTable: processes where there is no /proc, such as on macOS."""

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
                parent = process.ppid()
        except psutil.Error:
            return None
        return ProcessState(start_time=start_time, is_zombie=is_zombie, parent=parent)

    def descendants(self, pid: int) -> list[int]:
        """Return the children of a process, their children, and so on."""
        # One scan of all processes, also for grandchildren.
        try:
            return [process.pid for process in psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            return []

    def all(self) -> list[int]:
        """Return every process of this machine."""
        return psutil.pids()

    def has_variable(self, pid: int, name: str, value: str | None = None) -> bool | None:
        """Return whether a process was started with this variable, with any value or this one; None: nobody knows."""
        try:
            found = psutil.Process(pid).environ().get(name)
        except (psutil.Error, OSError):
            return None
        return found is not None and value in (None, found)
