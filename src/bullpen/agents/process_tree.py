"""Finding the processes of a turn, also those that moved away: by parents, by session, by a mark in their environment.

On Linux we adopt what our children leave behind (subreaper), ask the kernel to end a child when we die, and read /proc.
Elsewhere psutil finds them, and one that throws away its environment and outlives its parent unseen escapes.
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
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from msgspec import Struct

from bullpen.agents.processes.proc_files import ProcFiles
from bullpen.agents.processes.table import ProcessTable

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
def process_table() -> ProcessTable:
    """Return the processes of this machine."""
    if LINUX:
        return ProcFiles()
    from bullpen.agents.processes.psutil_table import PsutilTable

    return PsutilTable()


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
    state = process_table().state(pid)
    return None if state is None else ProcessId(pid, state.start_time)


def is_alive(process: ProcessId) -> bool:
    """Tell whether it is still the same process, and not a zombie."""
    state = process_table().state(process.pid)
    return state is not None and state.start_time == process.start_time and not state.is_zombie


def descendants(pid: int) -> list[ProcessId]:
    """Return the children of a process, their children, and so on."""
    return _identities(process_table().descendants(pid))


def marked(turn_id: str) -> list[ProcessId]:
    """Return every process of this machine that we may look at and that carries the mark of a turn."""
    table = process_table()
    return _identities(pid for pid in table.all() if table.has_variable(pid, TURN_VARIABLE, turn_id))


def _identities(pids: Iterable[int]) -> list[ProcessId]:
    return [identity for pid in pids if (identity := process_id(pid)) is not None]


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
        if not adopt_orphans():
            doomed.update(marked(turn_id))
        doomed = {process for process in doomed if not _is_buried(process)}
        for pid in process_table().children(os.getpid()):
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
    One that leads its session, or whose session is not known, may be the child of somebody else in this process, who
    will ask how it ended; it is buried once nobody has asked in a long while.
    """
    table = process_table()
    state = table.state(process.pid)
    if state is None or process.pid in running or process.start_time < program.start_time:
        return False
    if state.session == program.pid:
        return True
    if not state.is_zombie:
        return table.has_variable(process.pid, TURN_VARIABLE, turn_id)
    if state.session not in (process.pid, None):
        return state.session != os.getsid(0)
    return time.monotonic() - _first_seen_dead.setdefault(process, time.monotonic()) > UNCLAIMED_SECONDS


def boot_id() -> str:
    """Return what is different after every start of the machine, so that old numbers mean nothing.

    Nothing where the start times of processes tell that by themselves.
    """
    with contextlib.suppress(OSError):
        return _kernels_boot_id()
    return ""


@cache
def _kernels_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
