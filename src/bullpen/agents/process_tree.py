"""Finding all processes of a turn, even detached ones: by parent, by session, by a variable in their environment.

On Linux we adopt orphans of our children (subreaper), ask the kernel to end a child when we die, and read /proc.
Elsewhere psutil finds them, except one that clears its environment and outlives its parent before we see it.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from bullpen.agents.processes.proc_files import ProcFiles
from bullpen.agents.processes.table import ProcessTable

logger = logging.getLogger(__name__)

LINUX = sys.platform == "linux"
TURN_VARIABLE = "BULLPEN_TURN"
"""Set for every child to the id of its turn; its descendants inherit it."""

# Killed processes are gone at once, unless the kernel holds them in a system call.
REAP_SECONDS = 2.0
# How setpriv reports that it could not start the program.
LAUNCH_FAILURE = "setpriv: failed to execute "

# A dead child in a session of its own may have been started, and may still be awaited, by the application around us.
UNCLAIMED_SECONDS = 60.0

running: set[int] = set()
"""The programs that this process has started and not stopped yet."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class ProcessId(Struct, frozen=True):
    """A process that cannot be mistaken for a later one with the same pid."""

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
def _prctl() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True).prctl if LINUX else None


@cache
def adopt_orphans() -> bool:
    """Become the parent of our children's orphans, once per process. Return whether that is possible."""
    prctl = _prctl()
    return prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _reset_after_fork() -> None:
    adopt_orphans.cache_clear()
    running.clear()


os.register_at_fork(after_in_child=_reset_after_fork)


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent's thread ends; called in the child before exec."""
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


@cache
def death_bound() -> tuple[str, ...]:
    """Return the prefix of a command that asks the kernel to end it when we die; empty if setpriv cannot do that.

    `die_with_parent` needs a fork, which copies the page tables of our process: 18 ms for 1 GB.
    """
    import shutil

    setpriv = shutil.which("setpriv") if LINUX else None
    if setpriv is None:
        return ()
    prefix = (setpriv, "--pdeathsig", "TERM", "--")
    works = subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode == 0
    return prefix if works else ()


def process_id(pid: int) -> ProcessId | None:
    """Return the identity of a running process."""
    state = process_table().state(pid)
    return None if state is None else ProcessId(pid, state.start_time)


def is_alive(process: ProcessId) -> bool:
    """Return whether it is still the same process, and not a zombie."""
    state = process_table().state(process.pid)
    return state is not None and state.start_time == process.start_time and not state.is_zombie


def descendants(pid: int) -> list[ProcessId]:
    """Return the children of a process, their children, and so on."""
    return _identities(process_table().descendants(pid))


def processes_of_turn(turn_id: str) -> list[ProcessId]:
    """Return every process that has the id of a turn in its environment, as far as we may read it."""
    table = process_table()
    return _identities(pid for pid in table.all() if table.has_variable(pid, TURN_VARIABLE, turn_id))


def _identities(pids: Iterable[int]) -> list[ProcessId]:
    return [identity for pid in pids if (identity := process_id(pid)) is not None]


def end(processes: Iterable[ProcessId]) -> None:
    """Kill processes, each only if its pid has not been reused."""
    for process in processes:
        if process_id(process.pid) == process:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)


def end_all_running() -> None:
    """Kill every program that this process has started, and its descendants, for an exit that does not wait."""
    for pid in list(running):
        family = [process_id(pid), *descendants(pid)]
        end(process for process in family if process is not None)


async def end_and_reap(program: ProcessId, turn_id: str, family: Iterable[ProcessId]) -> None:
    """Kill the descendants of a program that has ended, and the orphans we adopted, until none are left."""
    remaining = set(family)
    deadline = time.monotonic() + REAP_SECONDS
    while True:
        if not adopt_orphans():
            remaining.update(processes_of_turn(turn_id))
        remaining = {process for process in remaining if not _is_gone(process)}
        for pid in process_table().children(os.getpid()):
            if (process := process_id(pid)) and _comes_from(process, program, turn_id):
                remaining |= {process, *descendants(pid)}
        if not remaining:
            return
        if time.monotonic() > deadline:
            logger.warning("processes left behind turn=%s pids=%s", turn_id, [process.pid for process in remaining])
            return
        end(remaining)
        await asyncio.sleep(0.002)


def _is_gone(process: ProcessId) -> bool:
    """Reap a process if it is our dead child, and return whether it no longer exists."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(process.pid, os.WNOHANG)[0] == process.pid
    return process_id(process.pid) != process


def _comes_from(process: ProcessId, program: ProcessId, turn_id: str) -> bool:
    """Return whether a child of ours is an orphan of a turn's program.

    It is in the program's own session, or has the turn's id in its environment. A dead process has no environment. If
    it leads its session, or its session is not known, other code in this process may have started it and may still
    wait for it; so it is reaped only after a long time.
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
    """Return an id that differs after every boot, so that old pids are not trusted.

    Empty where the start times of processes already differ.
    """
    with contextlib.suppress(OSError):
        return _kernels_boot_id()
    return ""


@cache
def _kernels_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
