"""One child: in its own session, with its three pipes served together, and ended without leftovers."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from bullpen.agents import guardian, process_tree, watchman
from bullpen.agents.crash_records import CrashRecords
from bullpen.clock import monotonic
from bullpen.config import DEPTH_VARIABLE, depth
from bullpen.errors import UnsupportedSystem

if sys.platform == "win32":
    raise UnsupportedSystem("bullpen runs agents on Linux and macOS. On Windows, use WSL.")

import fcntl

from bullpen.agents.guarded_program import GuardedProgram
from bullpen.agents.plain_program import PlainProgram
from bullpen.agents.processes.proc_files import ProcFiles

# Large enough to read a flood quickly, small enough not to keep other agents waiting.
READ_BYTES = 256 * 1024
# As large as Linux allows without privileges. Gemini exits before a full pipe has drained, and loses the rest.
PIPE_BYTES = 1024 * 1024
# How long a program gets to write its last output after SIGINT, and to exit after SIGTERM.
GRACE_SECONDS = 1.0
# A grandchild that holds our pipes open after its parent's exit gets this long to finish its line.
DRAIN_SECONDS = 0.5
HIGHEST_CODE = 128
_CRASHES = frozenset({signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
_F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", None)


class Child:
    """A running program. The caller must always await `stop`, also after an exception."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        prefix: Sequence[str] = (),
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes,
        keep_stdin_open: bool = False,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
        crash_records: CrashRecords,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._turn_id = uuid.uuid4().hex
        self._crash_records = crash_records
        self.last_activity = monotonic()
        deeper = str(depth() + 1)
        env = {**env, process_tree.TURN_VARIABLE: self._turn_id, DEPTH_VARIABLE: deeper}
        self._is_held = bool(prefix)
        self._program, self._pipes = _started((*prefix, *argv), cwd, env, self._turn_id, is_dialogue=keep_stdin_open)
        self._exited = self._program.exited
        self._family = [pid for pid in (self.pid, self._program.guardian_pid) if pid is not None]
        self._streams: list[asyncio.Future[None]] = []
        try:
            process_tree.running.add(self.pid)
            process_tree.tools_of.update(dict.fromkeys(self._family, env.get(process_tree.TOOLS_VARIABLE, "")))
            self._crash_records.record(self.pid, self._turn_id, guardian_pid=self._program.guardian_pid)
            if self._program.guardian_pid is None:
                watchman.watch(self._crash_records.folder)
            to_child, *from_child = self._pipes
            self._keeps_stdin_open = keep_stdin_open
            self._unsent = bytearray(stdin)
            _prepare(to_child.fileno())
            self._loop.add_writer(to_child.fileno(), self._writable)
            self._streams += map(self._open_reader, from_child, (on_stdout, on_stderr))
        except BaseException:
            # Nobody gets this child, so nobody would stop it.
            self._forget()
            self._program.abandon()
            self._close()
            raise

    @property
    def pid(self) -> int:
        """The id of the program's process, which is also that of its group and its session."""
        return self._program.pid

    async def wait(self) -> int:
        """Return the exit code, negative for a signal, once the program has ended and its output has been read.

        Raises what a callback raised.
        """
        pending: set[asyncio.Future[Any]] = {self._exited, *self._streams}
        while not self._exited.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for stream in done - {self._exited}:
                stream.result()
        if pending:
            await asyncio.wait(pending, timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        for stream in self._streams:
            if stream.done():
                stream.result()
        code = self._exited.result()
        # What holds a program ends as a shell would after a signal.
        return HIGHEST_CODE - code if self._is_held and code - HIGHEST_CODE in _CRASHES else code

    async def stop(self) -> None:
        """End the program if it is still running, and everything it has started; then close the pipes."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self._exited.done():
                break
            self._signal_group(number)
            await asyncio.wait([self._exited], timeout=GRACE_SECONDS)
        self._forget()
        is_gone = await self._program.end_rest()
        self._close()
        if is_gone:
            self._crash_records.forget(self._turn_id)

    def _forget(self) -> None:
        process_tree.running.discard(self.pid)
        for pid in self._family:
            process_tree.tools_of.pop(pid, None)

    def _signal_group(self, number: int) -> None:
        for group in self._groups(number):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def _groups(self, number: int) -> list[int]:
        """Return whom a signal is for: not what holds the program, since that would end it at once."""
        if self._is_held and number != signal.SIGKILL:
            return ProcFiles().children(self.pid) or [self.pid]
        return [self.pid]

    def _open_reader(self, pipe: IO[bytes], on_data: Callable[[bytes], None]) -> "asyncio.Future[None]":
        """Pass on what is read from a pipe in large pieces. The future is done at the end of the pipe."""
        descriptor = pipe.fileno()
        ended: asyncio.Future[None] = self._loop.create_future()
        _prepare(descriptor)

        def readable() -> None:
            try:
                data = os.read(descriptor, READ_BYTES)
                if data:
                    self.last_activity = monotonic()
                    on_data(data)
                    return
            except BlockingIOError:
                return
            except Exception as error:
                ended.set_exception(error)
            else:
                ended.set_result(None)
            self._loop.remove_reader(descriptor)

        self._loop.add_reader(descriptor, readable)
        return ended

    def close_stdin(self) -> None:
        """Close the program's input."""
        self._close_pipe(self._pipes[0])

    def write(self, data: bytes) -> None:
        """Write more to the program's input, if that is still open."""
        pipe = self._pipes[0]
        if not pipe.closed:
            self._unsent += data
            self._loop.add_writer(pipe.fileno(), self._writable)

    def _writable(self) -> None:
        """Write what is unsent while the other pipes are read, then close. The program need not read it."""
        pipe = self._pipes[0]
        try:
            if self._unsent:
                del self._unsent[: os.write(pipe.fileno(), memoryview(self._unsent)[:PIPE_BYTES])]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            self._unsent.clear()
        if not self._unsent and self._keeps_stdin_open:
            self._loop.remove_writer(pipe.fileno())
        elif not self._unsent:
            self._close_pipe(pipe)

    def _close(self) -> None:
        for pipe in self._pipes:
            self._close_pipe(pipe)
        for stream in self._streams:
            # Nobody awaits an exception from while it was being stopped, and asyncio would warn about that.
            if stream.done():
                stream.exception()

    def _close_pipe(self, pipe: IO[bytes]) -> None:
        if not pipe.closed:
            self._loop.remove_reader(pipe.fileno())
            self._loop.remove_writer(pipe.fileno())
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _started(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], turn_id: str, *, is_dialogue: bool
) -> tuple[GuardedProgram | PlainProgram, list[IO[bytes]]]:
    """Start a program with three pipes, and return our ends of them: to its input, from its output, from its errors."""
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours_if_it_fails:
        stdio: list[int] = []
        ours: list[IO[bytes]] = []
        for mode in ("wb", "rb", "rb"):
            reading, writing = _sockets() if is_dialogue and mode == "wb" else os.pipe()
            its_end, our_end = (reading, writing) if mode == "wb" else (writing, reading)
            theirs.callback(os.close, its_end)
            stdio.append(its_end)
            ours.append(ours_if_it_fails.enter_context(os.fdopen(our_end, mode, 0)))
        taken = guardian.take()
        program = (
            PlainProgram(argv, cwd=cwd, env=env, stdio=stdio, turn_id=turn_id)
            if taken is None
            else GuardedProgram(taken, argv, cwd=cwd, env=env, stdio=stdio, turn_id=turn_id)
        )
        ours_if_it_fails.pop_all()
        return program, ours


def _sockets() -> tuple[int, int]:
    """Return the ends of a connection. Any other agent could open a pipe, in /proc, and answer there for people."""
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def _prepare(descriptor: int) -> None:
    os.set_blocking(descriptor, False)
    if _F_SETPIPE_SZ is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, PIPE_BYTES)
