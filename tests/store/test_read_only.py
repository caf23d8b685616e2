"""Where nothing can be written, everything can still be read: all of it, and without a trace."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bullpen.errors import StoreBusy, StoreReadOnly
from bullpen.store import database, files, search
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.read_only import run_on_a_full_disk, run_on_read_only_media
from bullpen.testing.store_contract import begin, said

NAME = "bullpen.db"
OLD_FILES = Path(__file__).with_name("old_files")

# What a program sees of the database, and what it is told when it writes.
PROGRAM = """
import json, os, resource, sys
from bullpen.errors import StoreError
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import said

path, *full = sys.argv[1:]
if full:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with SqliteStore(path) as store:
    told = []
    for _ in range(2):
        (one,) = store.conversations()
        try:
            store.append(one.id, said("new"))
        except StoreError as error:
            told.append(type(error).__name__)
    seen = dict(
        told=told,
        messages=[stored.message.id for stored in store.messages(one.id)],
        found=len(store.search("word")),
        findings=[finding.text for finding in store.fsck()],
    )
os.write(1, json.dumps(seen).encode())
"""


def seen_by(done: "subprocess.CompletedProcess[str]") -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def program(path: Path, *words: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(path), *words]


def seen_on_read_only_media(folder: Path) -> Any:
    return seen_by(run_on_read_only_media(folder, program(folder / NAME)))


def write(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_WAITING", 4)
    begin(store, "c")
    for number in range(6):
        store.append("c", said(f"m{number}", f"word {number}"))


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "closed"
    with SqliteStore(folder / NAME) as store:
        write(store, monkeypatch)
    return folder


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "killed"
    with SqliteStore(tmp_path / "living" / NAME) as store:
        write(store, monkeypatch)
        shutil.copytree(tmp_path / "living", folder)
    return folder


@pytest.fixture
def without_index(killed: Path) -> Path:
    (killed / f"{NAME}-shm").unlink()
    return killed


def as_it_was(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


EVERYTHING = {"messages": [f"m{number}" for number in range(6)], "found": 6, "findings": []}


@pytest.mark.parametrize("case", ["closed", "killed", "without_index"])
@pytest.mark.foreign
def test_everything_is_read_from_read_only_media(case: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(case)
    before = as_it_was(folder)

    assert seen_on_read_only_media(folder) == {"told": ["StoreReadOnly"] * 2, **EVERYTHING}
    assert as_it_was(folder) == before


def test_everything_is_read_from_a_full_disk(closed: Path) -> None:
    """No file can grow, not even one that is needed for a moment."""
    done = subprocess.run(program(closed / NAME, "full"), capture_output=True, encoding="utf-8", check=False)

    assert seen_by(done) == {"told": ["StoreFull"] * 2, **EVERYTHING}
    with SqliteStore(closed / NAME) as store:
        store.append("c", said("when there is room again"))
        assert store.fsck() == []


@pytest.mark.parametrize("case", ["closed", "killed", "without_index"])
@pytest.mark.foreign
def test_everything_is_read_from_a_small_disk_that_is_full(case: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(case)

    done = run_on_a_full_disk(folder, program(folder / "full" / NAME))

    assert seen_by(done) == {"told": ["StoreFull"] * 2, **EVERYTHING}


@pytest.mark.foreign
def test_an_old_format_is_read_where_it_cannot_be_renewed(tmp_path: Path) -> None:
    old = min(OLD_FILES.iterdir())
    folder = tmp_path / "old"
    folder.mkdir()
    shutil.copy(old, folder / NAME)

    seen = seen_on_read_only_media(folder)

    assert seen["messages"] != []
    assert seen["findings"] == []
    assert (folder / NAME).read_bytes() == old.read_bytes()


@pytest.mark.foreign
def test_a_damaged_index_is_found_where_it_can_only_be_copied(closed: Path) -> None:
    db = sqlite3.connect(closed / NAME, isolation_level=None)
    db.execute("UPDATE said_data SET block = zeroblob(length(block)) WHERE id = (SELECT max(id) FROM said_data)")
    db.close()

    assert seen_on_read_only_media(closed)["findings"] == ["database disk image is malformed"]


@pytest.fixture
def refused(closed: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let nothing be written to the file of `closed`, until what is returned is called."""

    def refuse(path: Path) -> None:
        raise StoreReadOnly(path, "or its folder is not writable")

    monkeypatch.setattr(files, "check_access", refuse)
    return monkeypatch.undo


def test_what_others_write_meanwhile_is_read_too(closed: Path, refused: Callable[[], None]) -> None:
    with SqliteStore(closed / NAME) as reader:
        assert len(reader.messages("c")) == 6
        refused()
        with SqliteStore(closed / NAME) as writer:
            writer.append("c", said("m6"))
            assert len(reader.messages("c")) == 7
        assert len(reader.messages("c")) == 7


def test_what_changes_while_it_is_read_is_read_again(closed: Path, refused: Callable[[], None]) -> None:
    with SqliteStore(closed / NAME) as reader:
        refused()

        def change_meanwhile() -> None:
            with reader._database.reading(), SqliteStore(closed / NAME) as writer:
                writer.append("c", said("m6"))

        with pytest.raises(StoreBusy, match="Try again"):
            change_meanwhile()
        assert len(reader.messages("c")) == 7


def test_what_changes_while_it_is_copied_is_copied_again(without_index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise StoreReadOnly(path, "or its folder is not writable")

    def no_index(path: Path, mode: str) -> sqlite3.Connection:
        return real_connect(path if path.parent != without_index else Path("/dev/null"), mode)

    copies: list[str] = []

    def copy(source: str, target: str) -> None:
        real_copy(source, target)
        if not copies:
            os.utime(source)
        copies.append(source)

    real_connect, real_copy = database.connect, shutil.copyfile
    monkeypatch.setattr(files, "check_access", refuse)
    monkeypatch.setattr(database, "connect", no_index)
    monkeypatch.setattr(shutil, "copyfile", copy)

    with SqliteStore(without_index / NAME) as store:
        assert len(store.messages("c")) == 6
    assert len(copies) == 4


def test_what_can_be_written_again_is_written(closed: Path, refused: Callable[[], None]) -> None:
    with SqliteStore(closed / NAME) as store:
        with pytest.raises(StoreReadOnly):
            store.append("c", said("while it is not"))
        refused()

        store.append("c", said("m6"))

        assert len(store.messages("c")) == 7
