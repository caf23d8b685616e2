"""A child process by itself."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.agents.descriptors import descriptors, descriptors_left

from bullpen.agents import guardian, plain_program, process_tree, watchman
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.plain_program import PlainProgram
from bullpen.agents.process import Child
from bullpen.agents.processes.proc_files import ProcFiles

PATIENCE_SECONDS = 30
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="these look into /proc")


def test_what_goes_wrong_while_it_is_being_ended_is_nobodys_business(tmp_path: Path) -> None:
    complaints: list[dict[str, Any]] = []

    def refuse(data: bytes) -> None:
        raise ValueError(f"{len(data)} bytes are too many")

    async def cancelled_turn() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        child = Child(
            ["sh", "-c", "trap 'echo last words; exit' INT; echo ready >&2; while :; do sleep 0.01; done"],
            cwd=tmp_path,
            env=os.environ,
            stdin=b"",
            on_stdout=refuse,
            on_stderr=lambda _: ready.set(),
            crash_records=CrashRecords(tmp_path),
        )
        ready = asyncio.Event()
        await ready.wait()
        await child.stop()
        del child
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(cancelled_turn())

    assert complaints == []


def child_in(folder: Path, records: CrashRecords, *command: str) -> Child:
    return Child(
        command,
        cwd=folder,
        env=os.environ,
        stdin=b"",
        on_stdout=lambda _: None,
        on_stderr=lambda _: None,
        crash_records=records,
    )


@linux_only
def test_no_other_process_can_write_into_a_dialogue(tmp_path: Path) -> None:
    said: list[bytes] = []

    async def refused() -> None:
        child = Child(
            ["sh", "-c", "echo forged > /proc/$$/fd/0; read -r word; echo $word"],
            cwd=tmp_path,
            env=os.environ,
            stdin=b"ours\n",
            keep_stdin_open=True,
            on_stdout=said.append,
            on_stderr=lambda _: None,
            crash_records=CrashRecords(tmp_path),
        )
        await child.wait()
        await child.stop()

    asyncio.run(refused())

    assert b"".join(said) == b"ours\n"


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (state := ProcFiles().state(pid)) is not None and not state.is_zombie:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Unwritable(CrashRecords):
    """Records that fail as nothing should, after the program was started."""

    pid = 0

    def record(self, pid: int, turn_id: str, guardian_pid: int | None = None) -> None:
        self.pid = pid
        raise OSError("no more of anything")


@linux_only
@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_program_is_ended_if_something_fails_after_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    records = Unwritable(tmp_path)
    if not is_guarded:
        monkeypatch.setattr(guardian, "take", lambda: None)

    async def fail() -> None:
        with pytest.raises(OSError, match="no more of anything"):
            child_in(tmp_path, records, "sleep", "600")

    # A guardian that waits here does so with a descriptor of its own.
    guardian.let_idle_ones_go()
    gc.collect()
    before = descriptors()
    asyncio.run(fail())

    assert is_gone(records.pid)
    assert records.pid not in process_tree.running
    assert descriptors() == before


@linux_only
def test_a_program_is_ended_if_nobody_can_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def fail() -> None:
        with pytest.raises(RuntimeError, match="new thread"):
            PlainProgram(["sleep", "600"], cwd=tmp_path, env={**os.environ}, stdio=(0, 1, 2), turn_id="x")

    before = {*ProcFiles().children(os.getpid())}
    monkeypatch.setattr(threading.Thread, "start", refuse)
    asyncio.run(fail())

    assert {*ProcFiles().children(os.getpid())} <= before


@linux_only
def test_a_program_that_is_reaped_before_anybody_waits_for_it_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: object) -> None:
        raise ChildProcessError

    async def exit_code() -> int:
        command = ["sh", "-c", "exit 7"]
        return await PlainProgram(command, cwd=tmp_path, env={**os.environ}, stdio=(0, 1, 2), turn_id="x").exited

    monkeypatch.setattr(os, "waitid", too_late)

    assert asyncio.run(exit_code()) == 7


@linux_only
def test_pipes_that_cannot_all_be_opened_are_closed(tmp_path: Path) -> None:
    async def fail(left: int) -> None:
        with descriptors_left(left), pytest.raises(OSError, match="Too many open files"):
            child_in(tmp_path, CrashRecords(tmp_path), "true")

    guardian.let_idle_ones_go()
    gc.collect()
    before = descriptors()
    for left in range(6):
        # The event loop itself takes some.
        asyncio.run(fail(left))
        assert descriptors() == before


@linux_only
def test_a_watchman_that_cannot_start_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchman, "_watched", {})
    before = descriptors()

    for left in range(2):
        with descriptors_left(left):
            watchman.watch(tmp_path)
        assert descriptors() == before
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", str(tmp_path / "gone"))
        watchman.watch(tmp_path)
    assert descriptors() == before
    watchman.watch(tmp_path)
    watchman.watch(tmp_path)

    assert descriptors() == before + 1
    os.close(watchman._watched.pop(tmp_path))


async def plain(folder: Path, *command: str) -> PlainProgram:
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        program = PlainProgram(command, cwd=folder, env={**os.environ}, stdio=(nowhere,) * 3, turn_id="x")
        await program.exited
        return program
    finally:
        os.close(nowhere)


@linux_only
@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", -signal.SIGKILL)])
def test_nobody_gets_the_pid_of_a_program_before_its_group_is_killed(tmp_path: Path, script: str, code: int) -> None:
    async def end() -> None:
        program = await plain(tmp_path, "sh", "-c", f"sleep 600 & echo $! > child; {script}")
        assert program.exited.result() == code
        state = ProcFiles().state(program.pid)
        assert state is not None
        assert state.is_zombie
        assert await program.end_rest()
        assert ProcFiles().state(program.pid) is None
        assert is_gone(int((tmp_path / "child").read_text()))

    asyncio.run(end())


@linux_only
def test_a_stranger_with_the_pid_of_a_program_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS the program is reaped before its group is killed."""
    monkeypatch.delattr(os, "waitid")

    async def end() -> None:
        program = await plain(tmp_path, "true")
        stranger = stranger_with(program.pid)
        try:
            await program.end_rest()
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()

    asyncio.run(end())


def stranger_with(pid: int) -> "subprocess.Popen[bytes]":
    """Return a process in a session of its own that has the pid of one that was reaped."""
    for _ in range(200):
        try:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        except OSError as error:
            pytest.skip(f"pids cannot be chosen here: {error}")
        stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
        if stranger.pid == pid:
            return stranger
        stranger.kill()
        stranger.wait()
    pytest.skip("others are always faster")


@linux_only
def test_where_pids_are_not_held_a_group_is_still_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "waitid")
    # So that only its group tells where it belongs.
    monkeypatch.setattr(plain_program, "FIRST_SCAN_SECONDS", 600)

    async def end() -> None:
        program = await plain(tmp_path, "sh", "-c", "env -i sleep 600 & echo $! > child; exit 4")
        assert program.exited.result() == 4
        await program.end_rest()

    asyncio.run(end())
    assert is_gone(int((tmp_path / "child").read_text()))
