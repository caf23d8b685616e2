"""Python programs as real processes that need not import everything again: forks of one that has imported it.

What is about a process stays so: its number, signals, streams, terminal, folder, environment and end. Only its command
line is another's. What is about starting, or about what is imported, starts a program with `subprocess`.
"""

import contextlib
import fcntl
import gc
import os
import pickle
import pkgutil
import runpy
import select
import subprocess
import sys
import termios
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from io import TextIOWrapper
from multiprocessing import current_process, forkserver
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any, ClassVar

from msgspec import Struct

import bullpen

ROOT = Path(__file__).parent.parent
NOT_IMPORTED = ("bullpen.testing", "bullpen.tui", "bullpen.__main__")
LOCALE = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE")
RUN = "BULLPEN_TEST_RUN"
NOT_FORKED = ("pass_fds", "process_group", "umask", "user")
MOST_FILES = 1024


def start(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, **keys: Any
) -> "subprocess.Popen[Any]":
    """Start a program as `subprocess.Popen` does: as a fork if Python runs it as it runs here."""
    given = os.environ if env is None else env
    is_alike = all(given.get(name) == os.environ.get(name) for name in LOCALE)
    is_alike &= set(given.get("PYTHONPATH", "").split(os.pathsep)) <= {"", *sys.path}
    is_plain = not any(name.startswith("PYTHON") and name != "PYTHONPATH" for name in given)
    is_plain &= keys.keys().isdisjoint(NOT_FORKED) and command[1] in ("-m", "-c")
    if command[0] == sys.executable and is_alike and is_plain:
        return Fork(command, env=given, **keys)
    return subprocess.Popen(command, env=env, **keys)


def run(
    command: Sequence[str | Path],
    *,
    input: str | bytes | None = None,  # noqa: A002 - its name there
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **keys: Any,
) -> "subprocess.CompletedProcess[Any]":
    """Run a program to its end as `subprocess.run` does."""
    pipes = (("stdin", input is not None), ("stdout", capture_output), ("stderr", capture_output))
    keys |= {name: subprocess.PIPE for name, is_piped in pipes if is_piped}
    with start(command, **keys) as process:
        try:
            out, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(list(command), process.returncode, out, errors)
    if check:
        done.check_returncode()
    return done


def left() -> list[str]:
    """End the forks that still run, and return what they ran."""
    found = [fork for fork in list(Fork.running) if fork.poll() is None]
    for fork in found:
        fork.kill()
        fork.wait()
    return [f"{fork.args!r}" for fork in found]


class Fork(subprocess.Popen[Any]):
    """A process of `subprocess`, but that another one forks it, and says how it ended."""

    _ends = -1
    running: ClassVar[set["Fork"]] = set()
    """Those whose end nobody has seen."""

    def _execute_child(self, args: Sequence[str | Path], *more: Any) -> None:
        (cwd, env), streams, is_session = more[4:6], more[9:15], more[20]
        theirs = streams[0], streams[3], streams[5]
        plan = _Plan(tuple(map(str, args)), str(cwd or Path.cwd()), dict(env), is_session)
        given = [os.dup(number if fd == -1 else fd) for number, fd in enumerate(theirs)]
        try:
            self._ends, told = _server().connect_to_new_process(given)
        finally:
            for fd in given:
                os.close(fd)
        with os.fdopen(told, "wb") as pipe:
            pickle.dump({"sys_path": sys.path}, pipe)
            pickle.dump(plan, pipe)
        self.pid = forkserver.read_signed(self._ends)
        self._child_created = True
        self.running.add(self)
        ours = [its for mine, its in zip((streams[1], *streams[2:5:2]), theirs, strict=True) if -1 not in (mine, its)]
        for fd in (*ours, *(fd for name, fd in vars(self).items() if name == "_devnull")):
            os.close(fd)

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        self._look(0)
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        self._look(0 if wait_flags else None)
        if self.returncode is None:
            return 0, 0
        return self.pid, -self.returncode if self.returncode < 0 else self.returncode << 8

    def _look(self, seconds: float | None) -> None:
        """Note how it ended, if it has, within some seconds."""
        if self._ends != -1 and select.select([self._ends], [], [], seconds)[0]:
            try:
                self.returncode = forkserver.read_signed(self._ends)
            finally:
                self.running.discard(self)
                os.close(self._ends)
                self._ends = -1


class _Plan(Struct, frozen=True):
    """What a fork is to do; what runs it calls it a process, and asks it to begin."""

    command: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    is_session: bool

    def _bootstrap(self, parent_sentinel: int) -> int:
        del parent_sentinel
        # What is here already stays, and need not be looked at.
        gc.freeze()
        self._settle()
        code: object = 0
        try:
            self._run()
        except SystemExit as error:
            code = error.code
            if isinstance(code, str):
                print(code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
            code = 1
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        return code if isinstance(code, int) else 0 if code is None else 1

    def _run(self) -> None:
        _, how, what, *words = self.command
        sys.path.insert(0, "" if how == "-c" else self.folder)
        if how == "-m":
            sys.argv = [what, *words]
            runpy.run_module(what, run_name="__main__", alter_sys=True)
            return
        sys.argv = [how, *words]
        sys.modules["__main__"] = ModuleType("__main__")
        exec(what, vars(sys.modules["__main__"]))

    def _settle(self) -> None:
        """Be in the place of a process that has just begun."""
        for number, fd in enumerate(forkserver.get_inherited_fds() or ()):
            os.dup2(fd, number)
        os.closerange(3, MOST_FILES)
        if self.is_session:
            os.setsid()
            if os.isatty(0):
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        time.tzset()
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            errors, is_line = getattr(sys, f"__{name}__").errors, number == 2 or os.isatty(number)
            data = open(number, f"{mode}b", closefd=False)  # noqa: SIM115
            stream = TextIOWrapper(data, encoding="utf-8", errors=errors, line_buffering=is_line)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


@cache
def _server() -> forkserver.ForkServer:
    """Start what forks; it ends with this process."""
    server = forkserver.ForkServer()
    # Its socket is among the files of the run, which are removed together.
    vars(current_process())["_config"]["tempdir"] = mkdtemp()
    found = [module.name for module in pkgutil.walk_packages(bullpen.__path__, "bullpen.")]
    server.set_forkserver_preload([__name__, *(name for name in found if not name.startswith(NOT_IMPORTED))])
    run = os.environ.pop(RUN, None)
    try:
        with contextlib.chdir(ROOT):
            server.ensure_running()
    finally:
        # It ends a little later than this process, so it is not to be taken for what a test has left.
        os.environ |= {} if run is None else {RUN: run}
    return server
