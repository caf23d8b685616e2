"""TCP connections as Linux shows them in /proc: which socket is whose."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def sockets_between(own_port: int, other_port: int) -> frozenset[str]:
    """Return the sockets of connections from one port to another, as the files of a process name them."""
    return frozenset(f"socket:[{inode}]" for table in TABLES for inode in _inodes(table, own_port, other_port))


def _inodes(table: str, own_port: int, other_port: int) -> Iterator[str]:
    own, other = (f":{port:04X}" for port in (own_port, other_port))
    with contextlib.suppress(OSError):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            # https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html
            fields = line.split()
            if fields[1].endswith(own) and fields[2].endswith(other):
                yield fields[9]


def holds_socket(pid: int, sockets: frozenset[str]) -> bool:
    """Return whether a process has one of these sockets open, as far as we may look."""
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(file.readlink()) in sockets:
                    return True
    return False
