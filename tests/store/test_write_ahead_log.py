"""What a killed process left in its log is all there, or we say that it is not."""

import os
import shutil
from pathlib import Path

import pytest

from bullpen.errors import StoreDamaged
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

    with pytest.raises(StoreDamaged, match=r"remove bullpen\.db-shm to open it"):
        SqliteStore(killed)


def test_the_advice_in_the_error_helps(killed: Path) -> None:
    change(beside(killed, "-wal"), -1)

    beside(killed, "-shm").unlink()

    assert count(killed) == 7


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

    assert count(killed) == 9


@pytest.mark.parametrize("size", [0, 100, 10_000])
def test_a_log_that_was_cut_and_holds_nothing_yet_is_no_damage(killed: Path, size: int) -> None:
    stale = beside(killed, "-shm").read_bytes()
    assert count(killed) == 8
    beside(killed, "-wal").write_bytes(bytes(size))
    beside(killed, "-shm").write_bytes(stale)

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
