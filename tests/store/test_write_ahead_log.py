"""What a killed process left in its log is all there, or we say that it is not."""

import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from tests import forked

from bullpen.errors import LogLost, StoreDamaged
from bullpen.store import write_ahead_log
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import begin, said

NAME = "bullpen.db"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Give a file, its log and the log's index as they are when a process is killed."""
    path, copy = tmp_path / "living" / NAME, tmp_path / "killed"
    with SqliteStore(path) as store:
        begin(store, "c")
        for number in range(8):
            store.append("c", said(f"m{number}"))
        shutil.copytree(path.parent, copy)
    return copy / NAME


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def count(path: Path) -> int:
    with SqliteStore(path) as store:
        return store.conversation("c").messages


def change(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_what_was_only_in_the_log_is_there(killed: Path) -> None:
    assert write_ahead_log.damage(killed) == ""
    assert count(killed) == 8


@pytest.mark.parametrize("place", [0, 9, 17, 30, 33, 45, 100, -1, -4000, -5000, -20_000])
def test_a_changed_byte_in_the_log_is_found_every_time_one_looks(killed: Path, place: int) -> None:
    change(beside(killed, "-wal"), place)
    before = {file.name: file.read_bytes() for file in killed.parent.iterdir()}

    for _ in range(2):
        with pytest.raises(StoreDamaged, match="cannot be read from page"):
            SqliteStore(killed)

    assert {file.name: file.read_bytes() for file in killed.parent.iterdir()} == before


@pytest.mark.parametrize("size", [1, 31, 32, 5000, -1])
def test_a_log_that_is_too_short_is_found(killed: Path, size: int) -> None:
    content = beside(killed, "-wal").read_bytes()
    beside(killed, "-wal").write_bytes(content[:size])

    with pytest.raises(LogLost, match=r"bullpen restore --what-is-left"):
        SqliteStore(killed)


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_log_that_is_gone_is_found_every_time_one_looks(killed: Path, how: str) -> None:
    take_away(killed, how)
    before = {file.name: file.read_bytes() for file in killed.parent.iterdir()}

    for _ in range(2):
        with pytest.raises(LogLost, match=r"which had \d+ pages of its newest data. Nothing is written to it"):
            SqliteStore(killed)

    assert {file.name: file.read_bytes() for file in killed.parent.iterdir()} == before


def take_away(path: Path, how: str) -> None:
    if how == "removed":
        beside(path, "-wal").unlink()
    else:
        beside(path, "-wal").write_bytes(b"")


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_nothing_is_lost_with_a_log_that_was_copied_into_the_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / "living" / NAME
    with SqliteStore(path) as store:
        begin(store, "c")
        store.append("c", said("m"))
        other = sqlite3.connect(path)
        assert other.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0] == 0
        shutil.copytree(path.parent, tmp_path / "killed")
        other.close()
    take_away(tmp_path / "killed" / NAME, how)

    assert count(tmp_path / "killed" / NAME) == 1


def test_a_lost_log_is_found_before_what_it_leaves_in_the_file(killed: Path) -> None:
    """A checkpoint that was not finished leaves a file whose size is wrong."""
    beside(killed, "-wal").unlink()
    os.truncate(killed, killed.stat().st_size + 4096)

    with pytest.raises(LogLost, match="is missing"):
        SqliteStore(killed)


def test_a_log_that_others_had_is_found(killed: Path, tmp_path: Path) -> None:
    """Its pages would cover newer ones in the file."""
    with SqliteStore(tmp_path / "older.db") as store:
        begin(store, "c")
        shutil.copy(tmp_path / "older.db-wal", beside(killed, "-wal"))

    with pytest.raises(LogLost, match="is not the one that was written last"):
        SqliteStore(killed)


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_after_the_machine_was_started_only_a_missing_name_is_sure(killed: Path, how: str) -> None:
    """A power cut may leave a log without content, but not take away its name while the index has one."""
    take_away(killed, how)
    os.utime(beside(killed, "-shm"), (0, 0))

    if how == "removed":
        with pytest.raises(LogLost, match="is missing"):
            SqliteStore(killed)
    else:
        with SqliteStore(killed) as store:
            assert store.conversations() == []


def test_a_log_that_is_removed_while_we_write_is_saved(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with SqliteStore(path) as store:
        begin(store, "c")
        for number in range(6):
            store.append("c", said(f"m{number}"))
            if number % 2:
                beside(path, "-wal").unlink()
        shutil.copytree(tmp_path, tmp_path / "killed", ignore=shutil.ignore_patterns("killed"))

        assert store.conversation("c").messages == 6
    assert count(path) == 6
    # Removed after the last write, so nobody has had to write since.
    with pytest.raises(LogLost):
        SqliteStore(tmp_path / "killed" / NAME)


def test_a_log_that_is_removed_while_others_write_to_it_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with SqliteStore(path) as store, SqliteStore(path) as other:
        begin(store, "c")
        other.append("c", said("m0"))
        beside(path, "-wal").unlink()

        with pytest.raises(LogLost, match="was removed while it is open here"):
            store.append("c", said("m1"))
        with pytest.raises(LogLost, match="was removed while it is open here"):
            SqliteStore(path)
        assert elsewhere(path) == "LogLost: its log bullpen.db-wal was removed while another process has it open"
        assert not beside(path, "-wal").exists()
    assert count(path) == 1


def elsewhere(path: Path) -> str:
    program = """
import sys
from bullpen.store.sqlite import SqliteStore
try:
    SqliteStore(sys.argv[1])
except Exception as error:
    print(f"{type(error).__name__}: {error.reason}".partition(". ")[0], end="")
"""
    return str(forked.run([sys.executable, "-c", program, path], check=True, capture_output=True, text=True).stdout)


def test_a_log_that_is_emptied_while_we_write_ends_all_writing(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with SqliteStore(path) as store:
        begin(store, "c")
        store.append("c", said("m0"))
        os.truncate(beside(path, "-wal"), 0)
        content = path.read_bytes()

        for _ in range(2):
            with pytest.raises(StoreDamaged):
                store.append("c", said("m1"))

    assert path.read_bytes() == content
    with pytest.raises(LogLost):
        SqliteStore(path)


def test_a_log_that_is_put_into_the_file_while_one_looks_is_not_lost(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = write_ahead_log._problem

    def look_too_late(log: Path, witness: write_ahead_log.Witness) -> str:
        for ending in ("-shm", "-wal"):
            beside(killed, ending).unlink()
        return look(log, witness)

    monkeypatch.setattr(write_ahead_log, "_problem", look_too_late)

    assert write_ahead_log.damage(killed) == ""


def test_a_log_that_is_emptied_while_others_write_to_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with SqliteStore(path) as store:
        begin(store, "c")
        store.append("c", said("m0"))
        os.truncate(beside(path, "-wal"), 0)

        assert elsewhere(path) == "LogLost: its log bullpen.db-wal was cut off while another process has it open"


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_log_that_is_emptied_within_a_write_is_not_put_into_the_file(tmp_path: Path, goes_on: bool) -> None:
    path = tmp_path / NAME
    with SqliteStore(path) as store:
        begin(store, "c")
        # So long that the file grows, which is in its first page.
        store.append("c", said("m0", os.urandom(30_000).hex()))
        with store._database.writing() as db:
            db.execute("UPDATE states SET paused = 'soon'")
            os.truncate(beside(path, "-wal"), 0)
        content = path.read_bytes()
        if goes_on:
            with pytest.raises(StoreDamaged, match="its log was cut off while it was open"):
                store.append("c", said("m1"))

    assert path.read_bytes() == content
    with pytest.raises(LogLost):
        SqliteStore(path)


def test_what_a_power_cut_left_in_a_log_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / NAME
    SqliteStore(path).close()
    beside(path, "-wal").write_bytes(bytes(5000))

    with SqliteStore(path) as store:
        begin(store, "c")
        store.append("c", said("m0"))
    assert count(path) == 1


def test_what_follows_the_last_commit_does_not_matter(killed: Path) -> None:
    """A power cut during a write leaves this behind."""
    with beside(killed, "-wal").open("ab") as file:
        file.write(b"half a page" * 200)

    assert count(killed) == 8


def test_a_log_that_was_begun_anew_is_not_the_one_the_index_knows(killed: Path) -> None:
    """A power cut may keep the new log, and an index from before."""
    stale = beside(killed, "-shm").read_bytes()
    assert count(killed) == 8
    with SqliteStore(killed) as store:
        store.append("c", said("new"))
        newer = beside(killed, "-wal").read_bytes()
        content = killed.read_bytes()
    killed.write_bytes(content)
    beside(killed, "-wal").write_bytes(newer)
    beside(killed, "-shm").write_bytes(stale)
    os.utime(beside(killed, "-shm"), (0, 0))

    assert count(killed) == 9


@pytest.mark.parametrize("size", [0, 100, 10_000])
def test_a_log_that_was_cut_and_holds_nothing_yet_is_no_damage(killed: Path, size: int) -> None:
    """A power cut may keep an index from before."""
    stale = beside(killed, "-shm").read_bytes()
    assert count(killed) == 8
    beside(killed, "-wal").write_bytes(bytes(size))
    beside(killed, "-shm").write_bytes(stale)
    os.utime(beside(killed, "-shm"), (0, 0))

    assert count(killed) == 8


def test_an_index_from_before_the_machine_was_started_is_not_believed(killed: Path) -> None:
    """A power cut may keep the index, and lose what was written to the log and not synced yet."""
    change(beside(killed, "-wal"), -1)
    os.utime(beside(killed, "-shm"), (0, 0))

    assert count(killed) == 7


@pytest.mark.parametrize("index", [b"", b"\0" * 32768, b"\xff" * 32768])
def test_an_index_that_says_nothing_is_not_believed(killed: Path, index: bytes) -> None:
    beside(killed, "-shm").write_bytes(index)

    assert count(killed) == 8


def test_a_log_in_use_is_left_to_those_who_use_it(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / NAME) as one, SqliteStore(tmp_path / NAME) as other:
        begin(one, "c")
        for number in range(20):
            (one if number % 2 else other).append("c", said(f"m{number}"))
            assert count(tmp_path / NAME) == number + 1
