"""A network in which only this machine's loopback exists, so that no CLI under test can talk to anybody."""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bullpen.agents import guardian

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


@contextmanager
def loopback_only() -> Iterator[bool]:
    """Move this thread, and what it starts, into a network of its own. Yield whether the system allowed it."""
    libc = ctypes.CDLL(None, use_errno=True)
    own_network = Path("/proc/self/task") / str(os.getpid()) / "ns" / "net"
    try:
        before = os.open(own_network, os.O_RDONLY)
    except OSError:
        yield False
        return
    isolated = libc.unshare(CLONE_NEWNET) == 0
    # A guardian that was started before runs its agents in the network from before.
    guardian.let_idle_ones_go()
    try:
        if isolated:
            _bring_loopback_up()
        yield isolated
    finally:
        guardian.let_idle_ones_go()
        if isolated:
            libc.setns(before, CLONE_NEWNET)
        os.close(before)


def _bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))
