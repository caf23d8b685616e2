"""TCP connections as Linux shows them in /proc: which socket is whose, and what nobody shows."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
ESTABLISHED = "01"
SUBORDINATE = Path("/etc/subuid")


class End(Struct, frozen=True):
    """One end of a connection on this machine."""

    inode: int
    """0: no process has it any more."""
    user: int
    is_connected: bool

    @property
    def link(self) -> str:
        """How the files of a process name it."""
        return f"socket:[{self.inode}]"


def ends_between(own_port: int, other_port: int) -> list[End]:
    """Return the ends on this machine of connections from one port to another."""
    return [end for table in TABLES for end in _ends(table, own_port, other_port)]


def _ends(table: str, own_port: int, other_port: int) -> Iterator[End]:
    own, other = (f":{port:04X}" for port in (own_port, other_port))
    with contextlib.suppress(OSError):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            # https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html
            fields = line.split()
            if fields[1].endswith(own) and fields[2].endswith(other):
                yield End(int(fields[9]), int(fields[7]), fields[3] == ESTABLISHED)


def holds(pid: int, end: End) -> bool:
    """Return whether a process has this end open, as far as we may look."""
    return end.link in _open_files(f"/proc/{pid}")


def is_out_of_sight(pid: int) -> bool:
    """Return whether a process runs that does not let us see what it has open."""
    process = f"/proc/{pid}"
    try:
        if Path(process, "stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
            return False
        # That a folder can be listed does not mean that its links can be read; that of cwd is guarded as they are.
        Path(process, "cwd").readlink()
        next(Path(process, "fd").iterdir(), None)
    except PermissionError:
        return True
    except OSError:
        # It has ended.
        return False
    return False


def users_of(pid: int) -> frozenset[int]:
    """Return the users as whom a process does something."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Uid:"):
                return frozenset(map(int, line.split()[1:]))
    return frozenset()


def is_lent(user: int) -> bool:
    """Return whether people of this machine may use the number of a user as their own, and give it to their sockets."""
    try:
        lines = SUBORDINATE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    # https://man7.org/linux/man-pages/man5/subuid.5.html
    ranges = [fields[1:] for line in lines if len(fields := line.split(":")) == 3]
    return any(
        int(first) <= user < int(first) + int(count)
        for first, count in ranges
        if first.isdecimal() and count.strip().isdecimal()
    )


def _open_files(process: str) -> Iterator[str]:
    """Yield each file that a process has open."""
    # There may be very many; paths as objects would take several times as long.
    with contextlib.suppress(OSError):
        for file in os.listdir(f"{process}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                yield os.readlink(f"{process}/fd/{file}")  # noqa: PTH115
