"""Scripted agents that play inside this process instead of in one of their own, which takes less time.

It is the same agent that plays the same script, in a thread. Only what runs it is another: PlayedChild instead of
Child. A script with a step that needs a process is played in one, and so is an agent with the argument --process.
"""

import asyncio
import os
import shlex
import threading
import traceback
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bullpen.agents import runner
from bullpen.agents.process import Child
from bullpen.clock import monotonic
from bullpen.config import DEPTH_VARIABLE, depth
from bullpen.testing.agent.__main__ import main
from bullpen.testing.agent.host import Host, here
from bullpen.testing.agent.options import option
from bullpen.testing.agent.renderer import Record
from bullpen.testing.agent.script import ScriptError, load_script
from bullpen.testing.agent.streams import STDERR, STDIN, STDOUT
from bullpen.testing.stage import AGENT

PROCESS_OPTION = "--process"
NEED_A_PROCESS = frozenset({"child", "close_stdin", "close_stdout", "flood", "ignore", "kill_self", "orphan"})
CRASHED_EXIT = 1


def played() -> AbstractContextManager[object]:
    """Let the scripted agents of all turns play inside this process meanwhile."""
    return patch.object(runner, "Child", started)


def started(argv: Sequence[str], *, env: Mapping[str, str], **keys: Any) -> "Child | PlayedChild":
    """Start a program: inside this process if it is a scripted agent that can play there."""
    arguments = _arguments(argv)
    if arguments is None or _needs_a_process(arguments, env):
        return Child(argv, env=env, **keys)
    return PlayedChild(arguments, env=env, **keys)


class PlayedChild:
    """A scripted agent that plays in a thread; in all else like a Child."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        prefix: Sequence[str] = (),  # noqa: ARG002 - nothing holds a thread
        env: Mapping[str, str],
        stdin: bytes,
        keep_stdin_open: bool = False,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
        crash_records: object = None,  # noqa: ARG002 - nothing is left after a crash of this process
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.last_activity = monotonic()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._failed: asyncio.Future[int] = self._loop.create_future()
        self._on_data = {STDOUT: on_stdout, STDERR: on_stderr}
        self._host = _PlayedHost({**env, DEPTH_VARIABLE: str(depth() + 1)}, cwd, self._written)
        self.write(stdin)
        if not keep_stdin_open:
            self.close_stdin()
        threading.Thread(target=self._play, args=[list(arguments)], daemon=True).start()

    @property
    def pid(self) -> int:
        """The id of this process."""
        return os.getpid()

    async def wait(self) -> int:
        """Return the exit code, or raise what a callback raised."""
        done, _ = await asyncio.wait([self._ended, self._failed], return_when=asyncio.FIRST_COMPLETED)
        return (self._failed if self._failed in done else self._ended).result()

    async def stop(self) -> None:
        """Interrupt it, and wait for its end."""
        if not self._ended.done():
            self._host.interrupt()
            await self._ended
        if self._failed.done():
            self._failed.exception()

    def write(self, data: bytes) -> None:
        """Write more to its input."""
        self._host.give(data)

    def close_stdin(self) -> None:
        """Close its input."""
        self._host.give(None)

    def _play(self, arguments: list[str]) -> None:
        here.host = self._host
        try:
            status = main(arguments)
        except Exception:
            self._written(traceback.format_exc().encode(), STDERR)
            status = CRASHED_EXIT
        self._loop.call_soon_threadsafe(self._ended.set_result, status)

    def _written(self, data: bytes, fd: int) -> None:
        self._loop.call_soon_threadsafe(self._read, data, fd)

    def _read(self, data: bytes, fd: int) -> None:
        if self._failed.done():
            return
        self.last_activity = monotonic()
        try:
            self._on_data[fd](data)
        except Exception as error:
            self._failed.set_exception(error)


class _PlayedHost(Host):
    """The thread in which an agent plays."""

    def __init__(self, environ: MutableMapping[str, str], folder: Path, written: Callable[[bytes, int], None]) -> None:
        self._environ = environ
        self._folder = str(folder)
        self._written = written
        self._changed = threading.Condition()
        self._given = bytearray()
        self._is_closed = False
        self._is_interrupted = False

    @property
    def environ(self) -> MutableMapping[str, str]:
        return self._environ

    @property
    def folder(self) -> str:
        return self._folder

    def path(self, path: str) -> str:
        return str(Path(self._folder, path))

    def read(self, fd: int, size: int) -> bytes:
        if fd != STDIN:
            return super().read(fd, size)
        self._wait(lambda: bool(self._given) or self._is_closed)
        with self._changed:
            data = bytes(self._given[:size])
            del self._given[:size]
        return data

    def write(self, data: memoryview, fd: int) -> int:
        if fd not in (STDOUT, STDERR):
            return super().write(data, fd)
        self._wait(lambda: True)
        self._written(bytes(data), fd)
        return len(data)

    def sleep(self, seconds: float) -> None:
        self._wait(lambda: False, seconds)

    def take_signals(self, sigterm_exit: int | None) -> None:
        """There are no signals in a thread."""

    def give(self, data: bytes | None) -> None:
        """Add to what can be read; None is the end of it."""
        with self._changed:
            if data is None:
                self._is_closed = True
            elif not self._is_closed:
                self._given += data
            self._changed.notify()

    def interrupt(self) -> None:
        """Interrupt the agent where it waits or writes, once."""
        with self._changed:
            self._is_interrupted = True
            self._changed.notify()

    def _wait(self, is_over: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait until something is so, at most for some seconds, or raise KeyboardInterrupt."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_interrupted or is_over(), seconds)
            if self._is_interrupted:
                self._is_interrupted = False
                raise KeyboardInterrupt


def _arguments(argv: Sequence[str]) -> list[str] | None:
    """Return the arguments of the scripted agent that this command runs, also by a script for the shell."""
    if tuple(argv[:3]) == AGENT:
        return list(argv[3:])
    start = f"#!/bin/sh\nexec {shlex.join(AGENT)} ".encode()
    with Path(argv[0]).open("rb") as file:
        if file.read(len(start)) != start:
            return None
        own = shlex.split(file.read().decode())
    return [*own[:-1], *argv[1:]] if own[-1:] == ["$@"] else None


def _needs_a_process(arguments: list[str], env: Mapping[str, str]) -> bool:
    if PROCESS_OPTION in arguments:
        return True
    folder = option(arguments, "--turns")
    given = option(arguments, "--script") or env.get("BULLPEN_TEST_SCRIPT", "")
    sources = map(str, Path(folder).glob("script*")) if folder else [given]
    try:
        return any(_step_needs_a_process(step) for source in sources for step in load_script(source))
    except ScriptError:
        return False


def _step_needs_a_process(step: Record) -> bool:
    match step:
        case {"tool": {"runs": str()}}:
            return True
        case _:
            return not NEED_A_PROCESS.isdisjoint(step)
