"""The guardian: a small process beside bullpen that runs agents, one at a time, and ends all that came of each.

Linux makes it the parent of every orphan among an agent's descendants, in any session and with any environment.
So nothing can hide: when bullpen says that a turn is over, or is dead, the guardian kills all of its descendants, then
those that came meanwhile, until it has none. The pid of a child cannot be reused before the guardian has reaped it.

`guardian.py` starts it with an interpreter that has loaded nothing else, so it may import the standard library alone.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import struct
import sys
import time

REQUEST = struct.Struct("!I")
"""Before a request, with the program's three standard streams: how many bytes it has."""
ANSWER = struct.Struct("!ci")
"""What the guardian says: one of the words below, and a number."""
READY, STARTED, FAILED, ENDED, GONE = b"r", b"s", b"f", b"e", b"g"
"""It serves; a program has this pid, or could not be started for this error; it has ended with this exit code, negative
for a signal; and nothing is left of it. FAILED instead of READY: there cannot be a guardian on this system."""
END = b"e"
"""What bullpen says when a turn is over."""

# When bullpen is dead, its agent gets this long to end by itself.
GRACE_SECONDS = 0.3
# What runs as another user may not be killed, and is not waited for any longer than this while nothing changes.
PATIENCE_SECONDS = 60.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0005, 0.05

SANDBOX = b"\0--unshare-user\0--unshare-pid\0--unshare-ipc\0--die-with-parent\0--new-session\0--cap-drop\0ALL\0"
"""The arguments of a process of ours that only waits for the program within its sandbox, after its name."""

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
# Bullpen decides when the guardian ends; a key in its terminal, or a signal to all of a service, does not.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CHANGED = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ)


def main() -> None:
    """Serve until bullpen closes the other end of the socket."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    if not _becomes_parent_of_orphans():
        _say(channel, FAILED, errno.ENOSYS)
        return
    _keep_only(channel)
    inherited = [number for number in _IGNORED if signal.getsignal(number) is signal.SIG_IGN]
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    deaths, death = os.pipe()
    for end in (deaths, death):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(death, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _say(channel, READY, os.getpid())
    while _serve(channel, deaths, [number for number in _CHANGED if number not in inherited]):
        pass


def _keep_only(channel: socket.socket) -> None:
    """Close the files that bullpen has inherited. Agents get neither those nor the channel."""
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208, pathlib takes long to load
        if int(entry) > channel.fileno():
            # The listing itself was one of them.
            with contextlib.suppress(OSError):
                os.close(int(entry))
    channel.set_inheritable(False)


def _serve(channel: socket.socket, deaths: int, to_default: list[signal.Signals]) -> bool:
    """Run the next program and end what it leaves. Return whether bullpen is still there."""
    header, stdio, _, _ = socket.recv_fds(channel, REQUEST.size, 3)
    for descriptor in stdio:
        os.set_inheritable(descriptor, False)
    if not header:
        return False
    (size,) = REQUEST.unpack(header)
    request = channel.recv(size, socket.MSG_WAITALL)
    if len(request) < size:
        return False
    try:
        agent = _start(request, stdio, to_default)
    except OSError as error:
        _say(channel, FAILED, error.errno or -1)
        return True
    finally:
        for descriptor in stdio:
            os.close(descriptor)
    _say(channel, STARTED, agent)
    is_over = _watch(agent, channel, deaths)
    if not is_over:
        _end_gently(agent)
    if not _end_family():
        return False
    _say(channel, GONE, 0)
    return is_over


def _start(request: bytes, stdio: list[int], to_default: list[signal.Signals]) -> int:
    """Return the pid of the program that a request describes, or raise what prevented its start.

    A request is the number of arguments, the folder, the arguments and the variables, with zeros between them.
    """
    count, cwd, *words = request.split(b"\0")
    variables = {name: value for name, _, value in (line.partition(b"=") for line in words[int(count) :])}
    # It is looked for where it would look itself, and not where this process was once told to.
    os.environb[b"PATH"] = variables.get(b"PATH", os.fsencode(os.defpath))
    try:
        os.chdir(cwd)
        return os.posix_spawnp(
            words[0],
            words[: int(count)],
            variables,
            file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, target) for target, descriptor in enumerate(stdio)],
            setsid=True,
            setsigdef=to_default,
        )
    finally:
        os.chdir("/")


def _watch(agent: int, channel: socket.socket, deaths: int) -> bool:
    """Reap orphans, and tell how the agent ends, until its turn is over. Return False if bullpen is dead instead."""
    has_ended = False
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(deaths, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        if deaths in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(deaths, 4096)
            if not has_ended and (code := _reap_orphans(agent)) is not None:
                has_ended = True
                _say(channel, ENDED, code)
        if channel.fileno() in ready:
            return _heard(channel) == END


def _heard(channel: socket.socket) -> bytes:
    with contextlib.suppress(OSError):
        return channel.recv(len(END))
    return b""


def _reap_orphans(agent: int) -> int | None:
    """Return the exit code of the agent if it has ended. It is not reaped, so that its pid remains its own."""
    while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if found.si_pid == agent:
            return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        os.waitpid(found.si_pid, 0)
    return None


def _end_gently(agent: int) -> None:
    # What holds a program in a sandbox would end it at once, so that is not told.
    held = _children(agent) if _is_sandbox(agent) else []
    for group in held or [agent]:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while _reap_orphans(agent) is None and time.monotonic() < deadline:
        time.sleep(0.005)


def _end_family() -> bool:
    """Kill all that descends from this process until nothing does. Return False if something cannot be killed."""
    before: list[int] = []
    pause = deadline = 0.0
    while True:
        family = _kill_family()
        if not _has_children():
            return True
        if family != before:
            before, pause, deadline = family, SHORTEST_PAUSE, time.monotonic() + PATIENCE_SECONDS
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _kill_family() -> list[int]:
    """Kill all that descends from this process now, and return it."""
    children = _children(os.getpid())
    # All are found before any is killed: the children of a dead process are no longer found below it.
    below = [(parent, pid) for child in children for parent, pid in _descendants(child)]
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    for parent, pid in below:
        # Without pidfd_open, which an old kernel lacks, its turn comes when its parents are dead.
        with contextlib.suppress(OSError):
            _kill_below(parent, pid)
    return [*children, *(pid for _, pid in below)]


def _kill_below(parent: int, pid: int) -> None:
    """Kill what is not our own child. Its parent may have reaped it, and its pid be a stranger's, who is spared."""
    opened = os.pidfd_open(pid)
    try:
        if _parent(pid) in (parent, os.getpid()):
            signal.pidfd_send_signal(opened, signal.SIGKILL)
    finally:
        os.close(opened)


def _descendants(ancestor: int) -> list[tuple[int, int]]:
    """Return the parent and the pid of all below a process."""
    found: list[tuple[int, int]] = []
    parents = [ancestor]
    while parents:
        parent = parents.pop()
        children = _children(parent)
        found += [(parent, child) for child in children]
        parents += children
    return found


def _children(pid: int) -> list[int]:
    """Return the children of every thread of a process, or none if it has just ended."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208, pathlib takes long to load
            with contextlib.suppress(OSError):
                found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def _parent(pid: int) -> int:
    # The name in parentheses may contain anything, even spaces and parentheses.
    return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])


def _is_sandbox(pid: int) -> bool:
    with contextlib.suppress(OSError):
        name = _read(f"/proc/{pid}/cmdline")
        return name[name.find(b"\0") :].startswith(SANDBOX)
    return False


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123, pathlib takes long to load
        return file.read()


def _has_children() -> bool:
    """Reap the dead children, and return whether any is alive."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _say(channel: socket.socket, word: bytes, number: int) -> None:
    # If bullpen is dead, that is seen when it should be heard.
    with contextlib.suppress(OSError):
        channel.sendall(ANSWER.pack(word, number))


def _becomes_parent_of_orphans() -> bool:
    """Become the parent of orphans, and return whether this kernel allows that and tells who the children are."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NAME, b"guardian", 0, 0, 0)
    has_list = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110, pathlib takes long to load
    return has_list and libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


if __name__ == "__main__":
    main()
