"""ProcFiles: processes as Linux shows them in /proc."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bullpen.agents.processes.table import ProcessState

_PROC = Path("/proc")


class ProcFiles:
    """Reads the files of each process. Start times are ticks since boot."""

    def state(self, pid: int) -> ProcessState | None:
        """Return the state of a process, including zombies."""
        try:
            # The name in parentheses may contain anything, even spaces and parentheses.
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        is_zombie = fields[0] in (b"Z", b"X")
        return ProcessState(start_time=int(fields[19]), is_zombie=is_zombie, parent=int(fields[1]))

    def children(self, pid: int) -> list[int]:
        """Return the children of a process."""
        found: list[int] = []
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    found += map(int, (task / "children").read_bytes().split())
        return found

    def descendants(self, pid: int) -> list[int]:
        """Return the children of a process, their children, and so on."""
        found = []
        parents = [pid]
        while parents:
            children = self.children(parents.pop())
            parents += children
            found += children
        return found

    def all(self) -> Iterator[int]:
        """Return every process of this machine."""
        return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())

    def has_variable(self, pid: int, name: str, value: str | None = None) -> bool | None:
        """Return whether a process was started with this variable, with any value or this one; None: nobody knows."""
        wanted = f"\0{name}=" if value is None else f"\0{name}={value}\0"
        try:
            return wanted.encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return None
