"""The guardian: a small process beside bullpen that runs agents, one at a time, and ends all that came of each.

Linux makes it the parent of every orphan among an agent's descendants, in any session and with any environment.
So nothing can hide: when bullpen says that a turn is over, or is dead, the guardian kills its children, then those that
thereby became its children, until it has none. The pid of a child cannot be reused before the guardian has reaped it.

`guardian.py` starts it with an interpreter that has loaded nothing else, so it may import the standard library alone.
"""

import contextlib
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
for a signal; and nothing is left of it."""
END = b"e"
"""What bullpen says when a turn is over."""

# When bullpen is dead, its agent gets this long to end by itself.
GRACE_SECONDS = 0.3
# What runs as another user may not be killed, and is not waited for any longer than this.
PATIENCE_SECONDS = 60.0

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
# Bullpen decides when the guardian ends; a key in its terminal, or a signal to all of a service, does not.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CHANGED = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ)


def main() -> None:
    """Serve until bullpen closes the other end of the socket."""
    _become_parent_of_orphans()
    channel = _only_channel(int(sys.argv[1]))
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


def _only_channel(descriptor: int) -> socket.socket:
    """Return the channel. Agents get neither that nor any other file that bullpen has inherited."""
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208, pathlib takes long to load
        if int(entry) > descriptor:
            # The listing itself was one of them.
            with contextlib.suppress(OSError):
                os.close(int(entry))
    os.set_inheritable(descriptor, False)
    return socket.socket(fileno=descriptor)


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
    _end_children()
    _say(channel, GONE, 0)
    return is_over


def _start(request: bytes, stdio: list[int], to_default: list[signal.Signals]) -> int:
    """Return the pid of the program that a request describes, or raise what prevented its start.

    A request is the number of arguments, the folder, the arguments and the variables, with zeros between them.
    """
    count, cwd, *words = request.split(b"\0")
    variables = [line.partition(b"=") for line in words[int(count) :]]
    try:
        os.chdir(cwd)
        return os.posix_spawnp(
            words[0],
            words[: int(count)],
            {name: value for name, _, value in variables},
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
    with contextlib.suppress(OSError):
        os.killpg(agent, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while _reap_orphans(agent) is None and time.monotonic() < deadline:
        time.sleep(0.005)


def _end_children() -> None:
    """Kill the children of this process until there are none. Orphans of a killed child become children."""
    pause, deadline = 0.0002, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for child in _children():
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        if not _has_children():
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123, pathlib takes long to load
        return [int(pid) for pid in file.read().split()]


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


def _become_parent_of_orphans() -> None:
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NAME, b"guardian", 0, 0, 0)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("this kernel does not let a process adopt orphans")
    # If it does not tell them either, this ends here, before anything was started.
    _children()


if __name__ == "__main__":
    main()
