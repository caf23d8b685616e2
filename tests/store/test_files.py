"""The file: private from the first moment, and never touched when something is wrong with it."""

import os
import resource
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bullpen.errors import NotAStore, StoreDamaged, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from bullpen.store import files, schema, search
from bullpen.store.base import TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.store.write_ahead_log import OpenLog
from bullpen.testing.store_contract import GIVEN, MAX, OWNER, alive, asked, begin, said

PAGE = 4096

# The header of a page, its pointers, the free space, and three places among the cells at its end.
REGIONS = (0, 1, 3, 4, 5, 7, 8, 9, 13, 600, PAGE - 400, PAGE - 120, PAGE - 30, PAGE - 2)


@pytest.fixture
def path(tmp_path: Path, original: Path) -> Path:
    """Give a file with two conversations."""
    return Path(shutil.copy2(original, tmp_path))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "bullpen.db"
    with pytest.MonkeyPatch.context() as patch, SqliteStore(path) as store:
        patch.setattr(search, "MOST_WAITING", 4)
        for conversation_id in ("c", "d"):
            begin(store, conversation_id)
        store.claim("c", OWNER, is_alive=alive)
        for number in range(8):
            content = f"message {number}: " + "你好 words and more " * (4 * number) + "x" * (9000 if number == 5 else 0)
            store.append("c", said(f"m{number}", content), turns=[asked(f"m{number}")], owner=OWNER)
            store.append("d", said(f"m{number}", f"other {number}"))
        store.start_turn("c", "m0-max", owner=OWNER, given=GIVEN, at=1)
        store.append(
            "c", said("reply", speaker=MAX), finishes=TurnEnd(turn_id="m0-max", state="done", at=2), owner=OWNER
        )
    return path


@contextmanager
def untouched(path: Path) -> Iterator[None]:
    """Check that the block leaves the file as it is, and nothing beside it."""
    before = (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns, sorted(path.parent.iterdir()))
    yield
    after = (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns, sorted(path.parent.iterdir()))
    assert after == before


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777], ids=oct)
def test_only_we_can_read_it(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "some" / "folder" / "bullpen.db"
    old = os.umask(umask)
    try:
        with SqliteStore(path) as store:
            begin(store, "c")
            modes = {file.name: mode(file) for file in path.parent.iterdir()}
    finally:
        os.umask(old)

    assert modes == {"bullpen.db": 0o600, "bullpen.db-wal": 0o600, "bullpen.db-shm": 0o600}
    assert [mode(path.parent), mode(path.parent.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("given", [0o644, 0o640, 0o620, 0o604], ids=oct)
def test_a_file_that_others_could_read_is_closed_to_them(path: Path, given: int) -> None:
    path.chmod(given)
    path.parent.chmod(0o755)

    with SqliteStore(path) as store:
        begin(store, "e")
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}

    # The folder was not made by us; it may be anybody's.
    assert mode(path.parent) == 0o755


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("Dear diary,\n" * 1000, encoding="utf-8")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def broken_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("nowhere")


def another_programs(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE bookmarks (url)")
    db.close()


@pytest.mark.parametrize("replace", [empty, text, folder, pipe, another_programs])
def test_something_else_is_left_alone(path: Path, replace: Callable[[Path], None]) -> None:
    replace(path)

    with untouched(path), pytest.raises(NotAStore, match="was not changed"):
        SqliteStore(path)


def test_a_link_to_nowhere_is_left_alone(path: Path) -> None:
    broken_link(path)

    with pytest.raises(NotAStore):
        SqliteStore(path)

    assert path.is_symlink()


def test_a_newer_format_is_left_alone(path: Path) -> None:
    change(path, "PRAGMA user_version = 99")

    with untouched(path), pytest.raises(StoreTooNew, match="Update bullpen"):
        SqliteStore(path)


def test_a_newer_format_that_is_still_in_the_log_is_left_alone(path: Path) -> None:
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")

    with untouched(path), pytest.raises(StoreTooNew):
        SqliteStore(path)

    newer.close()


def test_tables_of_somebody_else_are_left_alone(path: Path) -> None:
    change(path, "ALTER TABLE turns ADD COLUMN mood TEXT")

    with untouched(path), pytest.raises(StoreDamaged, match="tables"):
        SqliteStore(path)


def change(path: Path, statement: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(statement)
    db.close()


def test_what_sqlite_itself_does_to_a_file_is_no_damage(path: Path) -> None:
    for statement in ("ANALYZE", "VACUUM", "REINDEX"):
        change(path, statement)

    with SqliteStore(path) as store:
        assert store.fsck() == []


@pytest.mark.parametrize("share", [0.0005, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_truncated_file_is_left_alone(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))

    with untouched(path), pytest.raises(StoreError):
        SqliteStore(path)


def test_a_longer_file_is_left_alone(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(100))

    with untouched(path), pytest.raises(StoreDamaged):
        SqliteStore(path)


def test_every_changed_byte_that_matters_is_found_and_none_is_written(path: Path) -> None:
    with SqliteStore(path) as store:
        before = all_of(store)
    intact = path.read_bytes()
    damaged = path.with_name("damaged.db")
    places = [*range(0, 100, 3), *(page + place for page in range(0, len(intact), PAGE) for place in REGIONS)]
    found = 0
    for place in places:
        data = bytearray(intact)
        data[place] ^= 0xFF if place % 2 else 0x01
        damaged.write_bytes(data)
        with untouched(damaged):
            found += not seems_intact(damaged, before)
    assert found > len(places) / 3


def all_of(store: SqliteStore) -> tuple[object, ...]:
    return store.messages("c"), store.messages("d"), store.record("c", "m0-max")


def seems_intact(path: Path, before: tuple[object, ...]) -> bool:
    """Tell whether nothing wrong is found with a file; then what it says must be what it said before."""
    try:
        with SqliteStore(path) as store:
            if store.fsck():
                return False
            assert all_of(store) == before
            return True
    except StoreError:
        return False


def test_a_large_file_is_looked_at_where_it_will_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "SMALL_PAGES", 0)
    SqliteStore(path).close()
    db = sqlite3.connect(path)
    ((root,),) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'states'")
    db.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(bytes(PAGE))

    with untouched(path), pytest.raises(StoreDamaged):
        SqliteStore(path)


def test_nothing_is_put_behind_a_damaged_message(path: Path) -> None:
    # The words of the last message lie where the newest cell of its page begins.
    change(path, "UPDATE messages SET content = 'hallo' WHERE id = 'reply'")

    with untouched(path), SqliteStore(path) as store:
        with pytest.raises(StoreDamaged, match="'reply' has changed since it was stored"):
            store.append("c", said("next"), owner=OWNER)
        with pytest.raises(StoreDamaged):
            begin(store, "e")
        with pytest.raises(StoreDamaged):
            store.messages("c")
        assert len(store.messages("d")) == 8


def test_nothing_is_put_after_a_damaged_message_that_another_process_wrote(path: Path) -> None:
    with SqliteStore(path) as store:
        store.append("d", said("ours"))
        with SqliteStore(path) as other:
            other.append("d", said("theirs"))
        change(path, "UPDATE messages SET content = 'hallo' WHERE id = 'theirs'")

        with pytest.raises(StoreDamaged, match="'theirs' has changed since it was stored"):
            store.append("d", said("next"))


def test_damage_that_is_found_later_ends_all_writing_and_keeps_what_was_acknowledged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise the whole file is read when it is opened, and what is damaged afterwards is not seen.
    monkeypatch.setattr(schema, "SMALL_PAGES", 0)
    with SqliteStore(path) as store:
        for number in range(5):
            store.append("d", said(f"long {number}", os.urandom(2000).hex()))
    store = SqliteStore(path)
    store.append("d", said("acknowledged"))
    # The first message is in the file, and far away from the last one, which is still in the log.
    data = bytearray(path.read_bytes())
    data[data.index(b"message 0: ")] ^= 1
    path.write_bytes(data)

    with pytest.raises(StoreDamaged):
        store.messages("c")
    with pytest.raises(StoreDamaged):
        store.append("d", said("lost"))
    store.close()

    assert path.read_bytes() == bytes(data)
    with SqliteStore(path) as again:
        assert again.messages("d")[-1].message.id == "acknowledged"
        assert [finding.kind for finding in again.fsck()] == ["changed"]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow over so many bytes, as if the disk were full."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))


def test_a_full_disk_loses_nothing(path: Path) -> None:
    with SqliteStore(path) as store:
        stored = [store.append("c", said("before"), owner=OWNER)]
        with largest_file(200_000), pytest.raises(StoreFull, match="Free some space"):
            stored.extend(
                store.append("c", said(f"n{number}", os.urandom(2000).hex()), owner=OWNER) for number in range(1000)
            )
        stored.append(store.append("c", said("after"), owner=OWNER))

        assert len(stored) > 3
        assert store.messages("c", limit=len(stored)) == stored
        assert store.fsck() == []


def test_a_connection_that_may_only_read_is_not_kept(path: Path) -> None:
    """SQLite opens a file for reading when a full disk keeps it from opening it for writing, and says so too late."""
    with SqliteStore(path) as store:
        database = store._database
        assert database._connection is not None
        database._connection.close()
        database._connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        database._connection.execute("SELECT count(*) FROM turns")
        database._log = OpenLog(files.log_of(path))
        with pytest.raises(StoreReadOnly):
            store.append("c", said("while it may not be written"), owner=OWNER)

        store.append("c", said("when it may again"), owner=OWNER)

        assert [one.message.id for one in store.messages("c", limit=1)] == ["when it may again"]


def test_a_full_disk_makes_no_half_file(tmp_path: Path) -> None:
    with largest_file(20_000), pytest.raises(StoreFull):
        SqliteStore(tmp_path / "bullpen.db")

    assert list(tmp_path.iterdir()) == []
    SqliteStore(tmp_path / "bullpen.db").close()


def test_a_draft_that_a_crash_left_behind_is_in_nobodys_way(path: Path) -> None:
    shutil.copy(path, path.with_name(".bullpen.db.0123.new"))

    with SqliteStore(path) as store:
        assert len(store.conversations()) == 2
