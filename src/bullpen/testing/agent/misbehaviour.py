"""What no agent should do, but some will. Independent of the stream formats."""

import os
from binascii import a2b_base64
from collections.abc import Callable

from bullpen.testing.agent.host import here
from bullpen.testing.agent.streams import STDERR, STDIN, STDOUT, close, write, write_text

FLOOD_BLOCK_BYTES = 1 << 16
FOREVER_SECONDS = 1e6
LOOK_SECONDS = 0.002


def leave(status: int) -> int:
    """End now with this exit status."""
    return status


def no_result() -> int:
    """End now as if the turn had succeeded."""
    return 0


def kill_self(name: str) -> None:
    """Kill this process with a signal, without a core file."""
    import resource
    import signal

    number = signal.Signals[name]
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def ignore(names: list[str]) -> None:
    """Ignore these signals from now on."""
    import signal

    for name in names:
        signal.signal(signal.Signals[name], signal.SIG_IGN)


def hang() -> None:
    """Do nothing more."""
    here.host.sleep(FOREVER_SECONDS)


def sleep(seconds: float) -> None:
    """Do nothing for a time."""
    here.host.sleep(seconds)


def wait_for(path: str) -> None:
    """Wait until a file is there."""
    while not os.path.exists(here.host.path(path)):  # noqa: PTH110 - importing pathlib takes longer than all else here
        here.host.sleep(LOOK_SECONDS)


def close_stdin() -> None:
    """Close stdin, read or not."""
    close(STDIN)


def close_stdout() -> None:
    """Close stdout; later output is lost."""
    close(STDOUT)


def raw_base64(encoded: str) -> None:
    """Write bytes that need not be text."""
    write(a2b_base64(encoded))


def stderr(text: str) -> None:
    """Write a text to stderr."""
    write_text(text, STDERR)


def flood(size: int, *, line: int = 1000, to: str = "stdout") -> None:
    """Write a number of bytes in lines of a given length; the last byte ends a line."""
    fd = {"stdout": STDOUT, "stderr": STDERR}[to]
    block = (b"x" * (line - 1) + b"\n") * max(1, FLOOD_BLOCK_BYTES // line)
    whole, rest = divmod(size, len(block))
    for _ in range(whole):
        write(block, fd)
    write(block[: rest - 1] + b"\n" if rest else b"", fd)


def slow_write(size: int, *, chunk: int = 1, delay: float = 0.01) -> None:
    """Write one line of a given length, a few bytes at a time."""
    line = b"x" * (size - 1) + b"\n"
    for start in range(0, size, chunk):
        here.host.sleep(delay)
        write(line[start : start + chunk])


def write_file(*, path: str, text: str) -> None:
    """Write a file, as agents do."""
    from pathlib import Path

    Path(here.host.path(path)).write_text(text, encoding="utf-8")


def child(seconds: float, *, pid_file: str = "", holds_output: bool = False) -> None:
    """Start a process that sleeps in our group, and leave it running."""
    dropped = (STDIN,) if holds_output else (STDIN, STDOUT, STDERR)
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in dropped]
    pid = os.posix_spawnp("sleep", ["sleep", str(seconds)], os.environ, file_actions=actions)
    if pid_file:
        write_file(path=pid_file, text=str(pid))


def orphan(seconds: float, *, pid_file: str = "", holds_output: bool = False) -> None:
    """Start a process that sleeps in a session of its own, and leave it as an orphan."""
    parent = os.fork()
    if parent:
        os.waitpid(parent, 0)
        return
    try:
        os.setsid()
        child(seconds, pid_file=pid_file, holds_output=holds_output)
    finally:
        os._exit(0)


STEPS: dict[str, Callable[..., int | None]] = {
    "child": child,
    "close_stdin": close_stdin,
    "close_stdout": close_stdout,
    "exit": leave,
    "flood": flood,
    "half_line": write_text,
    "hang": hang,
    "ignore": ignore,
    "kill_self": kill_self,
    "no_result": no_result,
    "orphan": orphan,
    "raw": write_text,
    "raw_base64": raw_base64,
    "sleep": sleep,
    "slow_write": slow_write,
    "stderr": stderr,
    "wait_for": wait_for,
    "write_file": write_file,
}
