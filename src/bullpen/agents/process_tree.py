"""Finding processes and ending them, each known by its pid and the time of its start.

Those of a turn are found by parent, and by a variable in their environment. One that clears its environment and has
outlived its parent can be found by nothing but its keeper, guardian_program.py, and is still known as an agent's by its
mark: processes/mark.py.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from msgspec import Struct

from bullpen.agents.processes.mark import UNLIMITED, mark_of, own_mark
from bullpen.agents.processes.proc_files import ProcFiles
from bullpen.agents.processes.table import ProcessTable

logger = logging.getLogger(__name__)

LINUX = sys.platform == "linux"
TURN_VARIABLE = "BULLPEN_TURN"
"""Set for every child to the id of its turn; its descendants inherit it. Guardians, who adopt them, have it, too."""
TOOLS_VARIABLE = "BULLPEN_TOOLS"
"""Set for the program of a turn that has tools: where their socket is."""

# Killed processes are gone at once, unless the kernel holds them in a system call.
REAP_SECONDS = 2.0
# How long what an earlier process left running gets to end by itself.
GRACE_SECONDS = 0.3

running: set[int] = set()
"""The programs that this process has started and not stopped yet."""
tools_of: dict[int, str] = {}
"""The socket of the tools of each of these, and of its guardian's, who adopts what it leaves; empty: it has none."""


class ProcessId(Struct, frozen=True):
    """A process that cannot be mistaken for a later one with the same pid."""

    pid: int
    start_time: int


@cache
def process_table() -> ProcessTable:
    """Return the processes of this machine."""
    if LINUX:
        return ProcFiles()
    from bullpen.agents.processes.psutil_table import PsutilTable

    return PsutilTable()


os.register_at_fork(after_in_child=running.clear)
os.register_at_fork(after_in_child=tools_of.clear)


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
    found = _identities(process_table().descendants(pid))
    # A pid that was reused before its identity was read is not among them a second time.
    still = set(process_table().descendants(pid)) if found else set()
    return [process for process in found if process.pid in still]


def processes_of_turn(turn_id: str) -> list[ProcessId]:
    """Return every process that has the id of a turn in its environment, as far as we may read it."""
    table = process_table()
    found = _identities(pid for pid in table.all() if table.has_variable(pid, TURN_VARIABLE, turn_id))
    return [process for process in found if table.has_variable(process.pid, TURN_VARIABLE, turn_id)]


def is_of_an_agent(process: ProcessId) -> bool | None:
    """Return whether an agent is a process, or has started it: of this bullpen or of another one.

    None: it cannot be known, since the process has ended, or changes its parents while they are looked at.
    """
    line, table = _with_ancestors(process), process_table()
    # Of many a process nobody may read the variables: a login's, sudo's, those outside of a container. The mark of an
    # agent can be read wherever its parents can.
    if any(one.pid in running or has_mark(one.pid) for one in line):
        return True
    if not line or table.has_variable(process.pid, TURN_VARIABLE) is None:
        return None
    return False if _with_ancestors(process) == line else None


def processes_of_agents() -> set[int]:
    """Return every process that is an agent's, or that one has started, as far as that can be seen."""
    table = process_table()
    agents = [*running, *(pid for pid in table.all() if has_mark(pid))]
    return {*agents, *(below for pid in agents for below in table.descendants(pid))}


def has_mark(pid: int) -> bool:
    """Return whether a process was started as an agent's, as far as its mark and its variables can be read."""
    return mark_of(pid) != UNLIMITED or bool(process_table().has_variable(pid, TURN_VARIABLE))


def may_use_tools(pid: int, tools: str) -> bool:
    """Return whether a process may use the tools with this socket: the program of their turn has started it.

    So may what no agent has started. What has ended already may not: nobody knows whose it was.
    """
    process = process_id(pid)
    line = [] if process is None else [one.pid for one in _with_ancestors(process)]
    known = next((tools_of[one] for one in line if one in tools_of), None)
    if known is not None or not line:
        return known == tools
    # An agent may have started us, too.
    below = line[: line.index(os.getpid())] if os.getpid() in line else line
    own, table = os.environ.get(TURN_VARIABLE, ""), process_table()
    return not any(
        mark_of(one) < own_mark()
        or (table.has_variable(one, TURN_VARIABLE) and not (own and table.has_variable(one, TURN_VARIABLE, own)))
        for one in below
    )


def _with_ancestors(process: ProcessId) -> list[ProcessId]:
    """Return a process, its parent, and so on, as far as they can be seen; nothing if it is not alive."""
    line: list[ProcessId] = []
    if is_alive(process):
        pid, table = process.pid, process_table()
        while pid and pid not in {one.pid for one in line} and (state := table.state(pid)) is not None:
            line.append(ProcessId(pid, state.start_time))
            pid = state.parent
    return line if line[:1] == [process] else []


def _identities(pids: Iterable[int]) -> list[ProcessId]:
    return [identity for pid in pids if (identity := process_id(pid)) is not None]


def end(processes: Iterable[ProcessId], number: int = signal.SIGKILL) -> None:
    """Kill processes, or send them another signal, each only if its pid has not been reused."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            _send(process, number)


def _send(process: ProcessId, number: int) -> None:
    try:
        # Through this the signal reaches the process that is looked at now, even if it ends and its pid is reused.
        opened = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        if process_id(process.pid) == process:
            os.kill(process.pid, number)
        return
    try:
        if process_id(process.pid) == process:
            signal.pidfd_send_signal(opened, number)
    finally:
        os.close(opened)


def end_firmly(remaining: Callable[[], Iterable[ProcessId]]) -> bool:
    """Ask what remains to end, and kill what does not, until nothing remains. Return whether anything did."""
    family: set[ProcessId] = set()
    began = time.monotonic()
    while time.monotonic() < began + GRACE_SECONDS + REAP_SECONDS:
        new = {*remaining()} - family
        family |= new
        alive = {process for process in family if is_alive(process)}
        if not alive:
            return bool(family)
        is_patient = time.monotonic() < began + GRACE_SECONDS
        end(new if is_patient else alive, signal.SIGTERM if is_patient else signal.SIGKILL)
        time.sleep(0.01)
    logger.warning("processes still running pids=%s", [process.pid for process in family if is_alive(process)])
    return True


def end_all_running() -> None:
    """Kill every program that this process has started, and its descendants, for an exit that does not wait."""
    for pid in list(running):
        family = [process_id(pid), *descendants(pid)]
        end(process for process in family if process is not None)


async def end_until_gone(turn_id: str, family: Iterable[ProcessId]) -> bool:
    """Kill a family, and all that has the turn's id in its environment, and return whether none are left."""
    remaining = set(family)
    deadline = time.monotonic() + REAP_SECONDS
    while True:
        remaining = {process for process in remaining.union(processes_of_turn(turn_id)) if is_alive(process)}
        if not remaining:
            return True
        if time.monotonic() > deadline:
            logger.warning("processes left behind turn=%s pids=%s", turn_id, [process.pid for process in remaining])
            return False
        end(remaining)
        await asyncio.sleep(0.002)


def boot_id() -> str:
    """Return an id that differs after every boot, so that old pids are not trusted.

    Empty where the start times of processes already differ.
    """
    with contextlib.suppress(OSError):
        return _kernels_boot_id()
    return ""


@cache
def pid_namespace() -> str:
    """Return which processes the pids here are numbers of: a container has pids of its own. Empty where none can."""
    with contextlib.suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""


@cache
def _kernels_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
