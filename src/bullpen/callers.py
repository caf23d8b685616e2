"""Who calls: the process at the other end of a socket, and whether a process is an agent's."""

import errno
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterable

from bullpen.agents import process_tree
from bullpen.agents.processes.connections import End, ends_between, holds, is_lent, is_out_of_sight, users_of
from bullpen.agents.processes.mark import UNLIMITED, own_mark

SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID = 0, 1, 2
"""Of macOS, which Python does not name."""
LONGEST_CREDENTIALS = 76
UNKNOWN = "It cannot be known that this is not an agent's answer. Nothing was done."
"""The answer to a sender who is not surely a person."""
TRIES = 3
"""A parent may end while it is looked at, or a socket go to another process; the next look finds it."""


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


def is_agents_connection(client_port: int, server_port: int) -> bool | None:
    """Return whether an agent's process has the other end of a TCP connection on this machine. Reads many files.

    None: it cannot be known. Only Linux tells; elsewhere nobody is taken for an agent.
    """
    if not process_tree.LINUX:
        return False
    ends: list[End] = []
    for _ in range(TRIES):
        ends = ends_between(client_port, server_port)
        if not ends:
            return False if _comes_from_elsewhere(client_port, server_port) else None
        found = _worst(_is_agents_end(end) for end in ends)
        if found is not None:
            return found
    is_persons = all(map(_must_be_a_persons, ends))
    # An agent that has ended before agents were looked for has it no more.
    return False if is_persons and ends == ends_between(client_port, server_port) else None


def _comes_from_elsewhere(client_port: int, server_port: int) -> bool:
    """Return whether only our end is on this machine: a system around it, such as that of WSL, has the other one."""
    ends = ends_between(server_port, client_port)
    return bool(ends) and all(end.is_connected for end in ends) and not ends_between(client_port, server_port)


def _is_agents_end(end: End) -> bool | None:
    """Return whether an agent's process has one end; None: it cannot be known, since nobody shows it."""
    if holds(os.getpid(), end):
        return False
    holders = [pid for pid in process_tree.process_table().all() if end.inode and holds(pid, end)]
    return _worst(map(_is_agents, holders)) if holders and any(holds(pid, end) for pid in holders) else None


def _is_agents(pid: int) -> bool | None:
    process = process_tree.process_id(pid)
    return None if process is None else process_tree.is_of_an_agent(process)


def _worst(found: Iterable[bool | None]) -> bool | None:
    """Return True if anything is an agent's, and None if that cannot be known of everything."""
    known = set(found)
    return True if True in known else None if None in known else False


def _must_be_a_persons(end: End) -> bool:
    """Return whether an end that no process shows is a person's: sshd and other users' proxies show nothing, either.

    A program can hide what it has open where nobody can look, such as io_uring: beside an agent, none is a person's.
    """
    # Who may use a number of another user can give it to a socket, too.
    is_ours = _is_ours(end.user)
    may_have: Callable[[int], bool] = _is_ours if is_ours else end.user.__eq__
    if not end.inode or any(any(map(may_have, users_of(pid))) for pid in process_tree.processes_of_agents()):
        return False
    everybody = process_tree.process_table().all()
    return not is_ours or any(os.getuid() in users_of(pid) and is_out_of_sight(pid) for pid in everybody)


def _is_ours(user: int) -> bool:
    return user == os.getuid() or is_lent(user)
