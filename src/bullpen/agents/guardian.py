"""Guardians: our side of guardian_program.py, which runs agents and ends all that came of them, even if we die."""

import contextlib
import fcntl
import logging
import os
import socket
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from bullpen.agents import guardian_program, process_tree
from bullpen.agents.guardian_program import ANSWER, READY, REQUEST, STARTED
from bullpen.agents.processes.mark import mark

logger = logging.getLogger(__name__)

# A guardian answers within milliseconds; this is for a machine that hardly answers itself.
PATIENCE_SECONDS = 20.0
# How many guardians may wait for the next turn; those of more turns at once are let go.
MOST_IDLE = 4
# Where a guardian finds its socket, and a number above all descriptors that are given to it.
_SOCKET, _HIGH = 3, 10


class Guardian:
    """A guardian of this process. It runs one program at a time, and ends by itself after us."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair()
        try:
            with theirs, Path(guardian_program.__file__).open("rb") as program:
                self.pid = _spawned(program.fileno(), theirs.fileno())
        except BaseException:
            self.channel.close()
            raise
        guardians.add(self)

    def greet(self) -> None:
        """Wait until it serves, and mark it, and so all that it will start."""
        self.channel.settimeout(PATIENCE_SECONDS)
        self._expect(READY)
        # Who is killed cannot tell any more whose its orphans are.
        mark(self.pid)

    def start(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdio: Sequence[int]) -> int:
        """Start a program and return its pid, or raise why that was not possible.

        Then the channel tells its end. Once END is said, the guardian ends the rest, says GONE, and can start another.
        """
        request = _encoded(argv, cwd, env)
        self.channel.settimeout(PATIENCE_SECONDS)
        socket.send_fds(self.channel, [REQUEST.pack(len(request))], stdio)
        self.channel.sendall(request)
        pid = self._expect(STARTED)
        self.channel.setblocking(False)
        return pid

    def is_there(self) -> bool:
        """Return whether it still runs, and reap it otherwise."""
        with contextlib.suppress(ChildProcessError):
            return os.waitpid(self.pid, os.WNOHANG)[0] == 0
        return False

    def reap(self) -> None:
        """Wait for its end."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _expect(self, expected: bytes) -> int:
        """Return the number in the guardian's next answer."""
        answer = self.channel.recv(ANSWER.size, socket.MSG_WAITALL)
        if len(answer) < ANSWER.size:
            raise OSError("its guardian ended")
        word, number = ANSWER.unpack(answer)
        if word != expected:
            raise CannotStart(number, os.strerror(number))
        return int(number)


class CannotStart(OSError):
    """A program could not be started, and its guardian can start another; or there cannot be a guardian here."""


guardians: "weakref.WeakSet[Guardian]" = weakref.WeakSet()
"""All of this process."""
idle: list[Guardian] = []
"""Those that wait for the next turn."""
_lock = threading.Lock()
is_possible = sys.platform == "linux"
"""Whether there can be any here: False once the system has said that it lacks what they need."""
_was_refused = False
"""Whether the last could not be started for a reason that may pass. The turn that wanted it does without."""


def is_one_ready() -> bool:
    """Return whether the next turn need not wait for a guardian."""
    return bool(idle) or not is_possible or _was_refused


def make_one_ready() -> None:
    """Start a guardian if none waits. That takes too long for an event loop."""
    if not is_one_ready() and (guardian := _started()):
        give_back(guardian)


def take() -> Guardian | None:
    """Return a guardian that does nothing, a new one if need be; None where there cannot be any, or not now."""
    global _was_refused
    with _lock:
        while idle:
            if (guardian := idle.pop()).is_there():
                return guardian
    if not _was_refused and is_possible and (started := _started()):
        return started
    # The next turn tries again.
    _was_refused = False
    return None


def _started() -> Guardian | None:
    global is_possible, _was_refused
    guardian = None
    try:
        guardian = Guardian()
        guardian.greet()
    except (OSError, NotImplementedError) as error:
        if guardian:
            let_go(guardian)
        if isinstance(error, CannotStart | NotImplementedError):
            is_possible = False
        else:
            _was_refused = True
        logger.warning("no guardian: after a crash of bullpen, agents may run until its next start error=%s", error)
        return None
    return guardian


def give_back(guardian: Guardian) -> None:
    """Keep a guardian that has nothing to do for the next turn."""
    with _lock:
        if len(idle) < MOST_IDLE:
            idle.append(guardian)
            return
    let_go(guardian)


def let_idle_ones_go() -> None:
    """Let go of those that wait: they are in the network and the other namespaces of the thread that started them."""
    with _lock:
        waiting = list(idle)
        idle.clear()
    for guardian in waiting:
        let_go(guardian)


def let_go(guardian: Guardian) -> None:
    """Close the channel of a guardian, so that it ends all that it has started, and itself."""
    guardian.channel.close()
    threading.Thread(target=guardian.reap, name=f"end of guardian {guardian.pid}", daemon=True).start()


def _forget_after_fork() -> None:
    """Close our copies in a copy of this process, which must not keep alive what should end with the original."""
    global _lock
    _lock = threading.Lock()
    for guardian in list(guardians):
        guardian.channel.close()
    idle.clear()


os.register_at_fork(after_in_child=_forget_after_fork)


def _spawned(source: int, end: int) -> int:
    """Start the program itself, in a session of its own, so that a key in the terminal does not reach it.

    It reads its source from its input, and runs in the real interpreter: `pkill -9 -f bullpen` does not find it.
    """
    interpreter = Path(sys.executable).resolve(strict=True)
    command = [str(interpreter), "-I", "-S", "-", str(_SOCKET), f"guardian of {os.getpid()}"]
    # What a program leaves is its child, and must not pass for a person's.
    environment = {process_tree.TURN_VARIABLE: "guardian", **os.environ}
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    with contextlib.ExitStack() as opened:
        given = []
        for descriptor, target in ((source, 0), (end, _SOCKET)):
            high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
            opened.callback(os.close, high)
            given.append((os.POSIX_SPAWN_DUP2, high, target))
        return os.posix_spawn(interpreter, command, environment, file_actions=[*nowhere, *given], setsid=True)


def _encoded(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> bytes:
    """Return a request; guardian_program.py reads it."""
    variables = [f"{name}={value}" for name, value in env.items()]
    words = [os.fsencode(word) for word in [str(len(argv)), str(cwd), *argv, *variables]]
    if any(b"\0" in word for word in words):
        raise ValueError("embedded null byte")
    return b"\0".join(words)
