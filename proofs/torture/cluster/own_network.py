"""A network namespace for this process and its children, in which packets can be dropped. Nobody else is in it."""

import ctypes
import os
import shutil
import subprocess

CLONE_NEWNET = 0x40000000
TABLE = "inet bullpen"
_libc = ctypes.CDLL(None, use_errno=True)


def enter() -> str:
    """Move this process into a network of its own, and return why that is impossible, if it is.

    Only root can do that: PostgreSQL refuses to run as the root that a user is in a namespace of users.
    """
    if os.geteuid() != 0 or not (shutil.which("nft") and shutil.which("ip")):
        return "that takes root, and the commands ip and nft (apt-get install iproute2 nftables)"
    if _libc.unshare(CLONE_NEWNET) != 0:
        return f"there is no network namespace: {os.strerror(ctypes.get_errno())}"
    _run("ip", "link", "set", "lo", "up")
    _run("nft", f"add table {TABLE}; add chain {TABLE} drops {{ type filter hook input priority 0; }}")
    return ""


def drop(address: str) -> None:
    """Drop every packet to and from an address: nobody is told that they are lost."""
    for end in ("saddr", "daddr"):
        _run("nft", f"add rule {TABLE} drops ip {end} {address} drop")


def heal() -> None:
    """Let all packets through again."""
    _run("nft", f"flush chain {TABLE} drops")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
