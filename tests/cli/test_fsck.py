"""bullpen fsck, on files that somebody has changed: it says so, and changes nothing but what it is told to mend."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from bullpen.cli import main
from bullpen.conversation.owner import this_process
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example

Printed = pytest.CaptureFixture[str]


def tamper(path: Path, statement: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(statement)
    db.close()


def test_all_is_well(database: Path, capsys: Printed) -> None:
    assert main(["fsck"]) == 0
    assert capsys.readouterr().out == f"{database}: everything is as it was written.\n"
    assert main(["fsck", "quiet"]) == 0
    assert main(["fsck", "loud"]) == 1
    assert "There is no conversation 'loud'" in capsys.readouterr().err


def test_a_changed_message_is_named_and_the_file_left_alone(database: Path, capsys: Printed) -> None:
    tamper(database, "UPDATE messages SET content = 'x' WHERE sequence = 2")
    before = database.read_bytes()

    for words in (["fsck"], ["fsck", "quiet"], ["fsck", "--db", str(database)]):
        assert main(words) == 1
        said = capsys.readouterr().out
        assert said.startswith(
            "Conversation quiet-river-4f2a: message 'm2' has changed since it was stored: its hash does not match.\n"
        )
        assert f"1 finding. Nothing was changed. Copy {database} to a safe place first" in said

    assert database.read_bytes() == before


def test_what_is_in_the_log_of_a_crash_stays_there(tmp_path: Path, capsys: Printed) -> None:
    """The log holds a change that was never put into the file: closing must not put it there."""
    store = SqliteStore(tmp_path / "a.db")
    write_example(store)
    store.close()
    db = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("UPDATE messages SET content = 'x' WHERE sequence = 2")
    crashed = tmp_path / "b.db"
    for ending in ("", "-wal"):
        shutil.copy(f"{tmp_path}/a.db{ending}", f"{crashed}{ending}")
    db.close()
    before = crashed.read_bytes(), Path(f"{crashed}-wal").read_bytes()

    assert main(["fsck", "--db", str(crashed)]) == 1

    assert "message 'm2'" in capsys.readouterr().out
    assert (crashed.read_bytes(), Path(f"{crashed}-wal").read_bytes()) == before


@pytest.mark.parametrize("place", [0, 20, 5000])
def test_bytes_written_over_anywhere_are_found(database: Path, capsys: Printed, place: int) -> None:
    data = bytearray(database.read_bytes())
    data[place : place + 4000] = b"\xaa" * 4000
    database.write_bytes(data)

    assert main(["fsck"]) == 1

    captured = capsys.readouterr()
    assert captured.out or captured.err
    assert "Traceback" not in captured.err
    assert "bug" not in captured.err
    assert database.read_bytes() == bytes(data)


def test_a_damaged_index_loses_no_message(database: Path, capsys: Printed) -> None:
    tamper(database, "UPDATE indexed SET number = 1000")

    assert main(["fsck"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("The index for searching: a search would not find the next messages.\n")
    assert "All messages are complete" in said


def test_nothing_to_check(empty_home: Path, capsys: Printed) -> None:
    assert main(["fsck"]) == 0
    assert capsys.readouterr().out.startswith("No conversations yet.")
    assert main(["fsck", "--db", "nowhere.db"]) == 1
    assert not empty_home.parent.exists()
    assert not Path("nowhere.db").exists()


def test_another_programs_file_is_no_damage_of_ours(tmp_path: Path, capsys: Printed) -> None:
    other = tmp_path / "other.db"
    other.write_text("hello")

    assert main(["fsck", "--db", str(other)]) == 1
    assert "is not a database" in capsys.readouterr().err
    assert other.read_text() == "hello"


STUCK = 'UPDATE states SET progress = json(\'{"turns_made": 2, "undecided": ["4", "9"]}\') WHERE conversation = 1'


def test_a_conversation_that_is_stuck_is_mended_when_asked_to(database: Path, capsys: Printed) -> None:
    tamper(database, STUCK)
    found = (
        "Conversation quiet-river-4f2a: its next turn would get a number that is taken, for there are turns up to 5.\n",
        "Conversation quiet-river-4f2a: turn '9' waits for a decision, but there is nothing to decide about it.\n",
    )

    assert main(["fsck"]) == 1
    advice = "Nothing is damaged. Mend this with: bullpen fsck --repair"
    assert capsys.readouterr().out == "".join(found) + f"\n2 findings. Nothing was changed. {advice}\n"
    assert main(["fsck", "--repair", "quiet"]) == 0
    mended = "\n2 findings mended. Nothing that was said has changed.\n"
    assert capsys.readouterr().out == "".join(f"Mended: {line}" for line in found) + mended
    assert main(["fsck", "--repair"]) == 0
    assert capsys.readouterr().out == f"{database}: everything is as it was written.\n"


def test_the_advice_names_the_database_that_was_checked(database: Path, tmp_path: Path, capsys: Printed) -> None:
    copy = tmp_path / "a copy.db"
    shutil.copy(database, copy)
    tamper(copy, "UPDATE messages SET content = 'x' WHERE sequence = 2")

    assert main(["fsck", "--db", str(copy)]) == 1
    assert f"sessions export ID --output FILE --db '{copy}'" in capsys.readouterr().out


def test_what_is_open_is_not_mended(database: Path, capsys: Printed) -> None:
    tamper(database, STUCK)
    before = database.read_bytes()
    with SqliteStore(database) as store:
        assert store.claim("quiet-river-4f2a", this_process(), is_alive=lambda _: False)
        assert main(["fsck", "--repair"]) == 1
    assert f"is open in process {os.getpid()}" in capsys.readouterr().err
    assert main(["fsck"]) == 1
    assert len(database.read_bytes()) == len(before)


def test_what_is_damaged_is_not_mended(database: Path, capsys: Printed) -> None:
    tamper(database, STUCK)
    tamper(database, "UPDATE messages SET content = 'x' WHERE sequence = 2")
    before = database.read_bytes()

    assert main(["fsck", "--repair"]) == 1
    assert "1 finding. Nothing was changed. Copy" in capsys.readouterr().out
    assert database.read_bytes() == before


def test_a_copy_without_its_log_is_not_said_to_be_whole(tmp_path: Path, capsys: Printed) -> None:
    copy = tmp_path / "copy.db"
    with SqliteStore(tmp_path / "a.db") as store:
        write_example(store)
        shutil.copy(store.path, copy)

    assert main(["fsck", "--db", str(copy)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{copy}: nothing is wrong with it, but it has no conversations. If it is a copy")
    assert "as it was written" not in said
