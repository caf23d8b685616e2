"""The lock of an owner is held as long as its process lives, and not a moment longer, whoever looks from wherever."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bullpen.errors import StoreDamaged
from bullpen.store.base import Owner
from bullpen.store.owner_locks import OwnerLocks
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import OWNER, alive, begin, dead

LOOK = """
import sys
from pathlib import Path
from bullpen.store.owner_locks import OwnerLocks
print(OwnerLocks(Path(sys.argv[1])).is_held("t"))
"""
HOLD = """
import os, sys
from pathlib import Path
from bullpen.store.owner_locks import OwnerLocks
locks = OwnerLocks(Path(sys.argv[1]))
assert locks.hold("t")
if sys.argv[2] == "fork" and os.fork() == 0:
    os.close(1)
    sys.stdin.read()
    os._exit(0)
print("held", flush=True)
sys.stdin.read()
"""
NEW_PIDS = ("unshare", "-p", "-f", "--mount-proc")
NO_PROC = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
ELSEWHERE = (
    pytest.param(NEW_PIDS, id="other pid namespace", marks=pytest.mark.foreign),
    pytest.param(NO_PROC, id="no /proc", marks=pytest.mark.foreign),
)


def needs(prefix: tuple[str, ...]) -> tuple[str, ...]:
    """Return a prefix of a command, or skip the test if it is not permitted here."""
    if prefix and subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip(f"`{' '.join(prefix[:2])}` is not permitted here, so NOTHING IS KNOWN about other namespaces")
    return prefix


def seen_from(prefix: tuple[str, ...], database: Path) -> str:
    """Return what another process says about the lock."""
    command = [*needs(prefix), sys.executable, "-c", LOOK, str(database)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Holder:
    """A process that holds the lock until it is killed."""

    def __init__(self, database: Path, how: str = "alone", prefix: tuple[str, ...] = ()) -> None:
        command = [*needs(prefix), sys.executable, "-c", HOLD, str(database), how]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"held\n"

    def kill(self, *, whole_group: bool = False) -> None:
        with suppress(ProcessLookupError):
            (os.killpg if whole_group else os.kill)(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def becomes(wanted: object, state: Callable[[], object]) -> bool:
    """Wait until something is as wanted; a kernel takes a moment to end a process of another namespace."""
    while state() != wanted:
        time.sleep(0.002)
    return True


@pytest.mark.parametrize("prefix", [pytest.param((), id="here"), *ELSEWHERE])
def test_a_lock_is_seen_from_everywhere_until_its_process_dies(tmp_path: Path, prefix: tuple[str, ...]) -> None:
    database = tmp_path / "a.db"
    holder = Holder(database)
    assert seen_from(prefix, database) == "True"
    holder.kill()
    assert seen_from(prefix, database) == "False"


@pytest.mark.parametrize("prefix", ELSEWHERE)
def test_a_lock_from_elsewhere_is_seen_here_until_its_process_dies(tmp_path: Path, prefix: tuple[str, ...]) -> None:
    database = tmp_path / "a.db"
    holder = Holder(database, prefix=prefix)
    assert OwnerLocks(database).is_held("t") is True
    holder.kill(whole_group=True)
    assert becomes(False, lambda: OwnerLocks(database).is_held("t"))


def test_a_forked_child_does_not_keep_the_lock_of_a_dead_owner(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    holder = Holder(database, "fork")
    os.kill(holder.process.pid, signal.SIGKILL)
    try:
        # The child lives until its input ends.
        assert becomes(False, lambda: OwnerLocks(database).is_held("t"))
    finally:
        holder.kill(whole_group=True)


def test_a_lock_belongs_to_the_file_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (tmp_path / "other.db").symlink_to(tmp_path / "data" / "a.db")
    (tmp_path / "data" / "a.db").touch()
    locks = OwnerLocks(tmp_path / "data" / "a.db")
    assert locks.hold("t")
    assert OwnerLocks(tmp_path / "link" / "a.db").is_held("t") is True
    assert OwnerLocks(tmp_path / "other.db").is_held("t") is True
    locks.close()
    assert OwnerLocks(tmp_path / "other.db").is_held("t") is False
    locks.remove("t")
    assert [file.name for file in (tmp_path / "data").iterdir()] == ["a.db"]


def test_a_token_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    locks = OwnerLocks(tmp_path / "data" / "a.db")
    for token in ("/../../elsewhere", "../elsewhere", "\ud83d", "", "x" * 5000):
        locks.hold(token)
        locks.is_held(token)
    assert [file.name for file in tmp_path.iterdir()] == ["data"]
    for token in list(locks._held):
        locks.remove(token)
    assert list((tmp_path / "data").iterdir()) == []


def test_where_nothing_can_be_locked_nothing_is_known(tmp_path: Path) -> None:
    locks = OwnerLocks(tmp_path / "not there" / "a.db")
    assert not locks.hold("t")
    assert locks.is_held("t") is None


def test_the_next_owner_removes_what_a_dead_one_left(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with SqliteStore(database) as store:
        begin(store, "c")
        store.claim("c", Owner(token="t", pid=1, start_time=1, boot_id=""), is_alive=dead)
    with SqliteStore(database) as store:
        assert store.claim("c", OWNER, is_alive=alive) is False
        assert sum("-owner-" in file.name for file in tmp_path.iterdir()) == 1
        assert store.claim("c", OWNER, is_alive=dead)
        assert sum("-owner-" in file.name for file in tmp_path.iterdir()) == 1
        store.release("c", OWNER)
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


def test_a_heartbeat_does_not_let_the_log_grow_without_end(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with SqliteStore(database) as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        for number in range(3_000):
            store.beat("c", OWNER, at=number)
        assert database.with_name("a.db-wal").stat().st_size < 6_000_000


def test_who_cannot_write_that_it_is_no_owner_any_more_is_none_all_the_same(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store, SqliteStore(tmp_path / "a.db") as other:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        store._database.stop_writing("a test")
        with pytest.raises(StoreDamaged):
            store.release("c", OWNER)
        assert other.is_locked(OWNER) is False


def test_nothing_is_left_of_the_owner_of_a_deleted_conversation(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
    with SqliteStore(tmp_path / "a.db") as store:
        other = Owner(token="t", pid=1, start_time=1, boot_id="")
        store.claim("c", other, is_alive=dead)
        store.delete("c", at=1, owner=other)
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


def test_who_closes_the_store_is_dead_although_its_process_lives(tmp_path: Path) -> None:
    closed = SqliteStore(tmp_path / "a.db")
    begin(closed, "c")
    closed.claim("c", OWNER, is_alive=dead)
    closed.close()
    with SqliteStore(tmp_path / "a.db") as store:
        assert store.is_locked(OWNER) is False
