"""Backups are complete, private and checked; putting one in place loses nothing of what was there."""

import errno
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests import forked

from bullpen.errors import BullpenError, LogLost, OutputExists, StoreDamaged
from bullpen.store import files, schema
from bullpen.store.backup import back_up, keep_what_is_left, restore
from bullpen.store.base import StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, OWNER, alive, asked, begin, said

OLD_FILE = Path(__file__).parent / "old_files" / "version_1.db"

# A process that says something and goes on, telling of each message that is stored.
WRITER = """
import itertools, sys
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import said
store = SqliteStore(sys.argv[1])
for number in itertools.count():
    store.append("c", said(f"w{number}", "words " * (number % 400)))
    print(number, flush=True)
"""

# A process that restores a backup, and waits for a line when it is about to give the copy its name, or has done so.
RESTORER = """
import sys
from pathlib import Path
from bullpen.store import backup
replace = Path.replace
def slow(self, target):
    moments = iter(("before it has its name", "when it has its name"))
    for moment in moments:
        if moment == sys.argv[3]:
            print("now", flush=True)
            sys.stdin.readline()
        if moment.startswith("before"):
            replace(self, target)
Path.replace = slow
print(backup.restore(Path(sys.argv[1]), Path(sys.argv[2])).kept, flush=True)
"""
# A process that opens a database, says something, and says more when it gets a line.
OPENER = """
import sys
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import said
with SqliteStore(sys.argv[1]) as store:
    for number in range(40):
        store.append("c", said(f"o{number}", "words " * 200))
        if number == 19:
            print("wrote", flush=True)
            sys.stdin.readline()
print("closed", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "bullpen.db"
    with SqliteStore(path) as store:
        begin(store, "c")
        for number in range(3):
            store.append("c", said(f"m{number}"))
    return path


def ids(path: Path) -> list[str]:
    with SqliteStore(path) as store:
        assert store.fsck() == []
        return [stored.message.id for stored in store.messages("c")]


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def killed(path: Path) -> None:
    """Leave a database as a process does that says two more things and is killed."""
    living = path.with_name("living")
    with SqliteStore(path) as store:
        for number in (3, 4):
            store.append("c", said(f"m{number}"))
        living.mkdir()
        for file in path.parent.glob("bullpen.db*"):
            shutil.copy(file, living)
    for file in living.iterdir():
        shutil.move(file, path.parent / file.name)
    living.rmdir()


def test_a_backup_is_one_private_file_with_everything(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "copies" / "backup.db"
    backup.parent.mkdir()

    contents = back_up(path, backup)

    assert (contents.conversations, contents.messages) == (1, 3)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert names(backup.parent) == ["backup.db"]
    # It needs no log: https://www.sqlite.org/fileformat.html#file_format_version_numbers
    assert backup.read_bytes()[18:20] == b"\1\1"
    assert ids(backup) == ["m0", "m1", "m2"]


def test_what_is_still_in_the_log_is_in_the_backup(path: Path, tmp_path: Path) -> None:
    killed(path)

    back_up(path, tmp_path / "backup.db")

    assert ids(tmp_path / "backup.db") == ["m0", "m1", "m2", "m3", "m4"]


def test_every_backup_is_one_moment_of_a_database_in_use(path: Path, tmp_path: Path) -> None:
    writer = forked.start([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        for number in range(5):
            told = int(writer.stdout.readline())
            back_up(path, tmp_path / f"{number}.db")
            written = ids(tmp_path / f"{number}.db")[3:]
            assert written == [f"w{one}" for one in range(len(written))]
            assert len(written) > told
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()


def test_nobody_has_a_backup_open(path: Path, tmp_path: Path) -> None:
    with SqliteStore(path) as store:
        store.claim("c", OWNER, is_alive=alive)
        store.append("c", said("m3"), turns=[asked("m3")], owner=OWNER)
        store.start_turn("c", "m3-max", owner=OWNER, given=GIVEN, at=1)
        back_up(path, tmp_path / "backup.db")

    with SqliteStore(tmp_path / "backup.db") as store:
        assert store.fsck() == []
        assert store.conversation("c").owner is None
        assert [turn.id for turn in store.recover("c", at=2)] == ["m3-max"]


def test_a_file_is_only_overwritten_if_that_is_asked_for(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    backup.write_text("mine")

    with pytest.raises(OutputExists):
        back_up(path, backup)
    assert backup.read_text() == "mine"
    back_up(path, backup, overwrite=True)

    assert ids(backup) == ["m0", "m1", "m2"]


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
def test_the_database_itself_is_never_overwritten(path: Path, ending: str) -> None:
    with SqliteStore(path), pytest.raises(BullpenError, match="belongs to the database itself"):
        back_up(path, path.with_name(path.name + ending), overwrite=True)


def test_another_database_in_use_is_never_overwritten(path: Path, tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "other.db") as other:
        begin(other, "c")
        with pytest.raises(BullpenError, match="is open in bullpen"):
            back_up(path, tmp_path / "other.db", overwrite=True)
    assert ids(tmp_path / "other.db") == []
    killed(path)
    with pytest.raises(BullpenError, match="with a log beside it"):
        back_up(tmp_path / "other.db", path, overwrite=True)
    assert ids(path) == ["m0", "m1", "m2", "m3", "m4"]


def test_what_is_damaged_is_not_taken_for_a_backup(path: Path, tmp_path: Path) -> None:
    tamper(path)

    with pytest.raises(StoreDamaged, match="No backup was written"):
        back_up(path, tmp_path / "backup.db")

    assert names(tmp_path) == ["data"]


def tamper(path: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE messages SET content = 'no' WHERE id = 'm1'")
    db.close()


def test_a_restored_database_is_the_backup_and_the_other_is_kept(path: Path, tmp_path: Path) -> None:
    back_up(path, tmp_path / "backup.db")
    before = (tmp_path / "backup.db").read_bytes()
    killed(path)

    restored = restore(tmp_path / "backup.db", path)

    assert restored.kept is not None
    assert restored.contents.messages == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ids(path) == ["m0", "m1", "m2"]
    assert ids(restored.kept) == ["m0", "m1", "m2", "m3", "m4"]
    assert names(path.parent) == ["bullpen.db", restored.kept.name]
    assert (tmp_path / "backup.db").read_bytes() == before


def test_where_nothing_is_a_backup_can_be_restored(path: Path, tmp_path: Path) -> None:
    back_up(path, tmp_path / "backup.db")
    (tmp_path / "new").mkdir()

    restored = restore(tmp_path / "backup.db", tmp_path / "new" / "bullpen.db")

    assert restored.kept is None
    assert ids(tmp_path / "new" / "bullpen.db") == ["m0", "m1", "m2"]


def test_on_a_new_machine_the_folder_is_made(path: Path, tmp_path: Path) -> None:
    back_up(path, tmp_path / "backup.db")

    restore(tmp_path / "backup.db", tmp_path / "new" / "machine" / "bullpen.db")

    assert ids(tmp_path / "new" / "machine" / "bullpen.db") == ["m0", "m1", "m2"]
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_where_there_are_no_links_the_other_is_copied(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(path, tmp_path / "backup.db")
    killed(path)
    before = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal", "-shm")}

    def no_links(self: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    restored = restore(tmp_path / "backup.db", path)

    assert restored.kept is not None
    assert {ending: Path(f"{restored.kept}{ending}").read_bytes() for ending in before} == before
    assert stat.S_IMODE(restored.kept.stat().st_mode) == 0o600
    assert ids(path) == ["m0", "m1", "m2"]
    assert ids(restored.kept) == ["m0", "m1", "m2", "m3", "m4"]


def test_a_conversation_that_is_stuck_hinders_no_backup(path: Path, tmp_path: Path) -> None:
    with SqliteStore(path) as store:
        change = StateChange(progress={"turns_made": 2, "message_number": 1})
        store.append("c", said("m3"), turns=[asked("m3", turn_id="5")], change=change)
        assert [finding.kind for finding in store.fsck()] == ["stuck"]

    assert back_up(path, tmp_path / "backup.db").stuck == 1
    restored = restore(tmp_path / "backup.db", path)

    assert (restored.contents.stuck, restored.findings) == (1, ())
    with SqliteStore(path) as store:
        assert [finding.kind for finding in store.repair("c")] == ["stuck"]
        assert store.fsck() == []


def test_an_old_backup_is_restored_in_the_newest_format(path: Path) -> None:
    before = OLD_FILE.read_bytes()

    restored = restore(OLD_FILE, path)

    assert restored.contents.messages > 0
    header = path.read_bytes()[:100]
    assert (header[18:20], int.from_bytes(header[60:64], "big")) == (b"\2\2", schema.latest_version())
    with SqliteStore(path) as store:
        assert store.fsck() == []
    assert OLD_FILE.read_bytes() == before


def test_every_restored_database_leaves_another_one(path: Path, tmp_path: Path) -> None:
    back_up(path, tmp_path / "backup.db")

    kept = {restore(tmp_path / "backup.db", path).kept for _ in range(3)}

    assert len(kept) == 3
    assert names(path.parent) == sorted(["bullpen.db", *(one.name for one in kept if one)])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"m1")] ^= 1
    path.write_bytes(content)


def shortened(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


def text(path: Path) -> None:
    path.write_text("Dear diary,\n" * 1000)


def gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("spoil", [tamper, flipped, shortened, text, gone])
def test_what_is_not_a_whole_backup_changes_nothing(path: Path, tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    back_up(path, tmp_path / "backup.db")
    spoil(tmp_path / "backup.db")

    with pytest.raises(BullpenError):
        restore(tmp_path / "backup.db", path)

    assert names(path.parent) == ["bullpen.db"]
    assert ids(path) == ["m0", "m1", "m2"]


@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_database_that_somebody_has_open_is_not_replaced(path: Path, tmp_path: Path, mode: str) -> None:
    back_up(path, tmp_path / "backup.db")
    program = (
        f"import sqlite3, sys; db = sqlite3.connect('file:{path}?mode={mode}', uri=True);"
        " db.execute('SELECT * FROM states').fetchall(); print(flush=True); sys.stdin.read()"
    )
    other = forked.start([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()

    with pytest.raises(BullpenError, match="Close it there first"):
        restore(tmp_path / "backup.db", path)
    other.communicate()
    with SqliteStore(path), pytest.raises(BullpenError, match="Close it there first"):
        restore(tmp_path / "backup.db", path)

    restore(tmp_path / "backup.db", path)


@pytest.mark.parametrize("moment", ["before it has its name", "when it has its name"])
def test_who_opens_it_meanwhile_opens_what_was_restored(path: Path, tmp_path: Path, moment: str) -> None:
    back_up(path, tmp_path / "backup.db")
    with SqliteStore(path) as store:
        for number in range(3, 60):
            store.append("c", said(f"m{number}", "words " * 200))
    restorer = started(RESTORER, tmp_path / "backup.db", path, moment)
    assert line_of(restorer) == "now"
    opener = started(OPENER, path)
    until_it_waits(opener, path)

    tell(restorer)
    assert line_of(opener) == "wrote"
    kept = Path(line_of(restorer))
    with SqliteStore(path) as store:
        for number in range(20):
            store.append("c", said(f"t{number}", "words " * 200))
        tell(opener)
        assert line_of(opener) == "closed"
        store.append("c", said("last"))

    first, second, third = (
        [f"{who}{number}" for number in numbers]
        for who, numbers in (("o", range(20)), ("t", range(20)), ("o", range(20, 40)))
    )
    assert ids(path) == ["m0", "m1", "m2", *first, *second, *third, "last"]
    assert ids(kept) == [f"m{number}" for number in range(60)]
    for process in (restorer, opener):
        process.communicate()


def test_of_two_who_restore_at_the_same_time_one_is_refused(path: Path, tmp_path: Path) -> None:
    back_up(path, tmp_path / "backup.db")
    first = started(RESTORER, tmp_path / "backup.db", path, "before it has its name")
    assert line_of(first) == "now"

    with pytest.raises(BullpenError, match="Close it there first"):
        restore(tmp_path / "backup.db", path)

    tell(first)
    line_of(first)
    first.communicate()
    assert ids(path) == ["m0", "m1", "m2"]


def test_a_database_that_was_created_meanwhile_is_not_overwritten(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(path, tmp_path / "backup.db")
    new = tmp_path / "new" / "bullpen.db"
    put = files.put_synced

    def late(draft: Path, target: Path, *, overwrite: bool) -> None:
        monkeypatch.setattr(files, "put_synced", put)
        with SqliteStore(new) as store:
            begin(store, "c")
            store.append("c", said("first"))
        put(draft, target, overwrite=overwrite)

    monkeypatch.setattr(files, "put_synced", late)
    with pytest.raises(BullpenError, match="Close it there first"):
        restore(tmp_path / "backup.db", new)

    assert ids(new) == ["first"]


def started(program: str, *words: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *map(str, words)]
    return forked.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def until_it_waits(process: "subprocess.Popen[str]", path: Path) -> None:
    """Wait until a process keeps the database open: by then it waits for the lock, or has opened it."""
    seen = 0
    while seen < 50:
        with suppress(OSError):
            opened = [str(file.readlink()) for file in Path(f"/proc/{process.pid}/fd").iterdir()]
            seen = seen + 1 if any(name.startswith(str(path)) for name in opened) else 0
        time.sleep(0.01)


def test_a_database_in_use_is_not_taken_for_a_backup(path: Path, tmp_path: Path) -> None:
    killed(path)

    with pytest.raises(BullpenError, match="Make a backup of it first"):
        restore(path, tmp_path / "other.db")
    with pytest.raises(BullpenError, match="is the database itself"):
        restore(path, path)


@pytest.mark.parametrize("how", ["removed", "emptied", "cut"])
def test_without_its_log_a_database_can_go_on_with_what_it_has(path: Path, how: str) -> None:
    killed(path)
    log = files.log_of(path)
    if how == "removed":
        log.unlink()
    else:
        os.truncate(log, 0 if how == "emptied" else log.stat().st_size - 1)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(LogLost):
        SqliteStore(path)

    restored = keep_what_is_left(path)

    assert restored.kept is not None
    assert restored.findings == ()
    assert ids(path) == ["m0", "m1", "m2", *(["m3"] if how == "cut" else [])]
    kept = {name.replace("bullpen.db", restored.kept.name): content for name, content in before.items()}
    assert {file.name: file.read_bytes() for file in path.parent.iterdir() if file != path} == kept


def test_what_is_left_can_be_read_even_if_it_is_damaged(path: Path) -> None:
    tamper(path)
    killed(path)
    os.truncate(files.log_of(path), files.log_of(path).stat().st_size - 1)

    restored = keep_what_is_left(path)

    assert ["m1" in finding.text for finding in restored.findings] == [True]
    with SqliteStore(path) as store:
        assert store.conversation("c").messages == 4


def test_a_log_that_is_there_is_not_given_up(path: Path) -> None:
    killed(path)

    with pytest.raises(BullpenError, match="nothing was changed"):
        keep_what_is_left(path)

    assert ids(path) == ["m0", "m1", "m2", "m3", "m4"]


def test_a_log_that_its_process_can_still_save_is_not_given_up(path: Path) -> None:
    with SqliteStore(path) as store:
        store.append("c", said("m3"))
        files.log_of(path).unlink()
        with pytest.raises(BullpenError, match="Close it there first"):
            keep_what_is_left(path)

    assert ids(path) == ["m0", "m1", "m2", "m3"]


def test_a_log_without_its_database_is_not_taken_for_that_of_a_new_one(path: Path, tmp_path: Path) -> None:
    back_up(path, tmp_path / "backup.db")
    killed(path)
    path.unlink()
    log = files.log_of(path).read_bytes()

    with pytest.raises(StoreDamaged, match=r"it is missing, but its log bullpen\.db-wal is there"):
        SqliteStore(path)
    assert not path.exists()
    restored = restore(tmp_path / "backup.db", path)

    assert restored.kept is not None
    assert files.log_of(restored.kept).read_bytes() == log
    assert ids(path) == ["m0", "m1", "m2"]


@pytest.mark.parametrize("place", ["missing/backup.db", "."])
def test_where_no_file_can_be_it_is_said(path: Path, tmp_path: Path, place: str) -> None:
    with pytest.raises(BullpenError) as caught:
        back_up(path, tmp_path / place, overwrite=True)

    assert "is a folder" in str(caught.value) or f"there is no folder {tmp_path / 'missing'}" in str(caught.value)
    assert names(tmp_path) == ["data"]


@pytest.mark.parametrize("version", ["this", "an old"])
def test_a_backup_that_is_only_read_stays_as_it_is(path: Path, tmp_path: Path, version: str) -> None:
    backup = tmp_path / "copies" / "backup.db"
    backup.parent.mkdir()
    back_up(path, backup)
    if version == "an old":
        shutil.copyfile(OLD_FILE, backup)
        with closing(sqlite3.connect(backup)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    before = backup.read_bytes()

    with SqliteStore(backup) as store, SqliteStore(backup) as another:
        (one,) = store.conversations()
        assert len(another.messages(one.id)) == one.messages
        assert store.fsck() == another.fsck() == []
        assert names(backup.parent) == ["backup.db"]
    assert backup.read_bytes() == before

    with SqliteStore(backup) as store, SqliteStore(backup) as another:
        assert another.conversation(one.id).messages == one.messages
        store.append(one.id, said("more"))
        assert another.conversation(one.id).messages == one.messages + 1
        another.append(one.id, said("even more"))
        assert store.conversation(one.id).messages == one.messages + 2
        assert store.fsck() == []
