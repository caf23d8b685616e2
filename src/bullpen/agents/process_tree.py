"""Finding the processes of a turn, also those that moved away: by parents, by session, by a mark in their environment.

On Linux we adopt what our children leave behind (subreaper), ask the kernel to end a child when we die, and read /proc.
Elsewhere the process group is all there is, and a child that opens a session of its own escapes.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

logger = logging.getLogger(__name__)

LINUX = sys.platform == "linux"
TURN_VARIABLE = "BULLPEN_TURN"
"""Set for every child to an id of its turn; its descendants inherit it."""

# Killed processes are gone at once, unless the kernel holds them in a system call.
BURIAL_SECONDS = 2.0
# How setpriv says that it could not start what it was to start.
LAUNCH_FAILURE = "setpriv: failed to execute "

# A dead child in a session of its own may be one that the application around us started and will ask about.
UNCLAIMED_SECONDS = 60.0

running: set[int] = set()
"""The programs that this process has started and not waited for yet."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class ProcessId(Struct, frozen=True):
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    start_time: int


_first_seen_dead: dict[ProcessId, float] = {}


@cache
def _prctl() -> "ctypes._NamedFuncPointer | None":
    return ctypes.CDLL(None, use_errno=True).prctl if LINUX else None


@cache
def adopt_orphans() -> bool:
    """Become the parent of whatever our children leave behind, once per process. Return whether that is possible."""
    prctl = _prctl()
    return prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _start_anew_after_fork() -> None:
    adopt_orphans.cache_clear()
    running.clear()


os.register_at_fork(after_in_child=_start_anew_after_fork)


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent's thread ends; to be called in the child before exec."""
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


@cache
def death_bound() -> tuple[str, ...]:
    """Return the words before a command that ask the kernel to end it when we die; none where setpriv cannot do that.

    With `die_with_parent` the child must be made by fork, which copies the page tables of our process: 18 ms for 1 GB.
    """
    setpriv = shutil.which("setpriv") if LINUX else None
    if setpriv is None:
        return ()
    words = (setpriv, "--pdeathsig", "TERM", "--")
    works = subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0
    return words if works else ()


def process_id(pid: int) -> ProcessId | None:
    """Return the identity of a running process."""
    start_time = _stat(pid).get("start_time")
    return None if start_time is None else ProcessId(pid, start_time)


def is_alive(process: ProcessId) -> bool:
    """Tell whether it is still the same process, and no zombie."""
    stat = _stat(process.pid)
    return stat.get("start_time") == process.start_time and not stat.get("zombie")


def descendants(pid: int) -> list[ProcessId]:
    """Return the children of a process, their children, and so on."""
    found = []
    parents = [pid]
    while parents:
        for child in _children(parents.pop()):
            parents.append(child)
            if identity := process_id(child):
                found.append(identity)
    return found


def marked(turn_id: str) -> list[ProcessId]:
    """Return every process of this machine that we may look at and that carries the mark of a turn."""
    if not LINUX:
        return []
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [identity for pid in pids if _has_mark(pid, turn_id) and (identity := process_id(pid)) is not None]


def end(processes: Iterable[ProcessId]) -> None:
    """Kill processes, each only if it is still the one that was meant."""
    for process in processes:
        if process_id(process.pid) == process:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)


def end_all_running() -> None:
    """Kill every program that this process has started, and what it has started: for who leaves without waiting."""
    for pid in list(running):
        family = [process_id(pid), *descendants(pid)]
        end(process for process in family if process is not None)


async def end_and_bury(program: ProcessId, turn_id: str, family: Iterable[ProcessId]) -> None:
    """Kill the family of a program that has ended, and all it left to us, until none of them is there."""
    doomed = set(family)
    deadline = time.monotonic() + BURIAL_SECONDS
    while True:
        doomed = {process for process in doomed if not _is_buried(process)}
        for pid in list(_children(os.getpid())):
            if (process := process_id(pid)) and _comes_from(process, program, turn_id):
                doomed |= {process, *descendants(pid)}
        if not doomed:
            return
        if time.monotonic() > deadline:
            logger.warning("processes left behind turn=%s pids=%s", turn_id, [process.pid for process in doomed])
            return
        end(doomed)
        await asyncio.sleep(0.002)


def _is_buried(process: ProcessId) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(process.pid, os.WNOHANG)[0] == process.pid
    return process_id(process.pid) != process


def _comes_from(process: ProcessId, program: ProcessId, turn_id: str) -> bool:
    """Tell whether a child of ours was left to us by a turn's program.

    It is in the program's own session, or carries the turn's mark. Of the dead in other sessions nothing more is known.
    One that leads its session may be the child of somebody else in this process, who will ask how it ended; it is
    buried once nobody has asked in a long while.
    """
    if process.pid in running or process.start_time < program.start_time:
        return False
    stat = _stat(process.pid)
    if stat.get("session") == program.pid:
        return True
    if not stat.get("zombie"):
        return _has_mark(process.pid, turn_id)
    if stat["session"] != process.pid:
        return stat["session"] != os.getsid(0)
    return time.monotonic() - _first_seen_dead.setdefault(process, time.monotonic()) > UNCLAIMED_SECONDS


def boot_id() -> str:
    """Return what is different after every start of the machine, so that old numbers mean nothing."""
    with contextlib.suppress(OSError):
        return _kernels_boot_id()
    return ""


@cache
def _kernels_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (task / "children").read_bytes().split())


def _stat(pid: int) -> dict[str, int]:
    try:
        # The name in parentheses may hold anything, spaces and parentheses too.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return {}
    return {"start_time": int(fields[19]), "session": int(fields[3]), "zombie": fields[0] in (b"Z", b"X")}


def _has_mark(pid: int, turn_id: str) -> bool:
    try:
        return f"{TURN_VARIABLE}={turn_id}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
