"""The lock of a session: one turn at a time, in all processes, and free when its process is dead."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.agents import session_lock
from bullpen.agents.session_lock import SessionLock

ID = "11111111-2222-4333-8444-555555555501"
HOLD = "import sys; from bullpen.agents.session_lock import SessionLock; l = SessionLock(sys.argv[1]);"
WAIT = "print(l.hold(), flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "bullpen" / "sessions"


def other_process() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOLD + WAIT, ID]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def answer(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def test_only_one_holds_it_at_a_time(state: Path) -> None:
    one, other = SessionLock(ID), SessionLock(ID)

    assert one.hold()
    assert not other.hold()
    one.release()
    assert other.hold()
    other.release()
    assert list(state.iterdir()) == [], "nothing is left of it"


def test_sessions_are_locked_apart() -> None:
    locks = [SessionLock(ID), SessionLock(ID.replace("1", "2"))]

    assert [lock.hold() for lock in locks] == [True, True]
    for lock in locks:
        lock.release()


def test_letting_go_of_what_is_not_held_takes_nothing_from_others() -> None:
    one, other = SessionLock(ID), SessionLock(ID)
    one.hold()

    other.release()

    assert not SessionLock(ID).hold()
    one.release()


def test_another_process_cannot_take_it_and_its_death_frees_it(state: Path) -> None:
    with other_process() as other:
        assert answer(other) == "True"
        assert not SessionLock(ID).hold()
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        lock = SessionLock(ID)
        assert lock.hold()
        lock.release()


def test_of_many_processes_that_want_it_at_once_one_gets_it() -> None:
    processes = [other_process() for _ in range(8)]
    try:
        assert sorted(map(answer, processes)) == ["False"] * 7 + ["True"]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_link_in_its_place_is_not_followed(state: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    state.mkdir(parents=True)
    (state / f"{ID}.lock").symlink_to(target)

    with pytest.raises(OSError, match="symbolic links"):
        SessionLock(ID).hold()

    assert not target.exists()


def test_a_file_system_without_locks_is_an_error_and_leaves_nothing_open(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(session_lock, "flock", no_locks)
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(OSError, match="No locks available"):
        SessionLock(ID).hold()

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert state.is_dir()


def test_only_its_owner_can_look_at_it(state: Path) -> None:
    lock = SessionLock(ID)
    lock.hold()

    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / f"{ID}.lock").stat().st_mode & 0o777 == 0o600
    lock.release()
