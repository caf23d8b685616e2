"""Who calls: the process at the other end of a socket, and whether a process is an agent's."""

import errno
import os
import socket
import struct
import sys

from bullpen.agents import process_tree
from bullpen.agents.processes.connections import holds_socket, sockets_between
from bullpen.agents.processes.mark import UNLIMITED, own_mark

SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID = 0, 1, 2
"""Of macOS, which Python does not name."""
LONGEST_CREDENTIALS = 76
TRIES = 3
"""A parent may end while it is looked at; the next look finds another one."""


def caller(line: socket.socket) -> int | None:
    """Return the process that has connected to a local socket.

    None: it is another user's, or the system does not tell.
    """
    try:
        pid, user = _credentials(line)
    except (OSError, struct.error):
        return None
    return pid if pid > 0 and user == os.getuid() else None


def _credentials(line: socket.socket) -> tuple[int, int]:
    """Return the numbers of the process and of its user, or raise OSError where the system has no way to tell."""
    if (option := getattr(socket, "SO_PEERCRED", None)) is not None:
        pid, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
        return pid, user
    if sys.platform != "darwin":
        raise OSError(errno.ENOTSUP, "the system does not tell who has connected")
    version, user = struct.unpack_from("2I", line.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, LONGEST_CREDENTIALS))
    if version != 0:
        raise OSError(errno.ENOTSUP, "the system tells it in another way")
    return line.getsockopt(SOL_LOCAL, LOCAL_PEERPID), user


def is_within_agent() -> bool | None:
    """Return whether an agent has started this process; None: it cannot be known."""
    if process_tree.TURN_VARIABLE in os.environ or own_mark() != UNLIMITED:
        return True
    for _ in range(TRIES):
        process = process_tree.process_id(os.getpid())
        found = None if process is None else process_tree.is_of_an_agent(process)
        if found is not None:
            return found
    return None


def is_agents_connection(client_port: int, server_port: int) -> bool:
    """Return whether an agent's process holds the other end of a TCP connection on this machine. Reads many files.

    Only Linux tells; elsewhere nobody is taken for an agent.
    """
    if not process_tree.LINUX:
        return False
    sockets = sockets_between(client_port, server_port)
    if not sockets or holds_socket(os.getpid(), sockets):
        return False
    table = process_tree.process_table()
    agents = [pid for pid in table.all() if process_tree.has_mark(pid)]
    family = {*agents, *(below for pid in agents for below in table.descendants(pid))}
    return any(holds_socket(pid, sockets) for pid in family)
