"""bullpen backup and restore, and what every command says about a log that was lost."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example
from bullpen.testing.read_only import run_on_read_only_media
from bullpen.testing.store_contract import said

Printed = pytest.CaptureFixture[str]
Bullpen = Callable[..., "subprocess.CompletedProcess[str]"]


def count(path: Path) -> int:
    with SqliteStore(path) as store:
        return sum(one.messages for one in store.conversations())


def killed_without_its_log(database: Path) -> None:
    """Let a process say one thing more and be killed, and then lose its log."""
    with SqliteStore(database) as store:
        store.append(store.conversations()[0].id, said("lost"))
        content = {ending: Path(f"{database}{ending}").read_bytes() for ending in ("", "-shm")}
    for ending, data in content.items():
        Path(f"{database}{ending}").write_bytes(data)


def test_a_backup_says_what_is_in_it_and_can_be_read(database: Path, tmp_path: Path, capsys: Printed) -> None:
    messages = count(database)

    assert main(["backup", "copy.db"]) == 0

    assert capsys.readouterr().out == (
        f"copy.db: 1 conversation with {messages} messages, all as they were written.\n"
        "Read it with --db, or put it back with bullpen restore. Browsers that are signed in are not in it.\n"
    )
    assert main(["fsck", "--db", "copy.db"]) == 0
    assert count(tmp_path / "copy.db") == messages


def test_a_file_is_not_overwritten_unasked(database: Path, capsys: Printed) -> None:
    assert main(["backup", "copy.db"]) == 0
    assert main(["backup", "copy.db"]) == 1
    assert "copy.db already exists and was not changed. Choose another file, or add --force." in capsys.readouterr().err
    assert main(["backup", "copy.db", "--force"]) == 0


def test_a_backup_comes_back_and_the_other_one_is_kept(database: Path, capsys: Printed) -> None:
    messages = count(database)
    main(["backup", "copy.db"])
    with SqliteStore(database) as store:
        store.append(store.conversations()[0].id, said("newer"))
    capsys.readouterr()

    assert main(["restore", "copy.db"]) == 0

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"There are now 1 conversation with {messages} messages, the last of 20")
    kept = Path(second.removeprefix("The database as it was: "))
    assert (count(database), count(kept)) == (messages, messages + 1)


def test_nothing_is_restored_that_is_open(database: Path, capsys: Printed) -> None:
    main(["backup", "copy.db"])
    with SqliteStore(database):
        assert main(["restore", "copy.db"]) == 1
    assert "is open in bullpen or another program. Close it there first." in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["copy.db", "--what-is-left"]])
def test_one_of_two_things_is_restored(database: Path, words: list[str], capsys: Printed) -> None:
    assert main(["restore", *words]) == 2
    assert "Name a backup, or add --what-is-left." in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["sessions"], ["sessions", "show"], ["sessions", "search", "x"], ["sessions", "export"], ["explain"]]
)
def test_a_lost_log_is_said_by_every_command(database: Path, words: list[str], capsys: Printed) -> None:
    killed_without_its_log(database)
    before = database.read_bytes()

    assert main(words) == 1

    said_so = capsys.readouterr().err
    assert "its log conversations.db-wal is missing" in said_so
    assert f"`bullpen restore --what-is-left`, both with --db {database}" in said_so
    assert database.read_bytes() == before


def test_a_lost_log_is_found_by_fsck_and_what_is_left_can_go_on(database: Path, capsys: Printed) -> None:
    messages = count(database)
    killed_without_its_log(database)

    assert main(["fsck"]) == 1
    assert "pages of its newest data" in capsys.readouterr().out
    assert main(["restore", "--what-is-left"]) == 0
    assert f"There are now 1 conversation with {messages} messages" in capsys.readouterr().out
    assert main(["fsck"]) == 0


def test_a_log_without_its_database_is_not_nothing(database: Path, capsys: Printed) -> None:
    database.rename("elsewhere.db")
    Path(f"{database}-wal").write_bytes(b"messages")

    for words in (["sessions"], ["fsck"]):
        assert main(words) == 1
        assert "it is missing, but its log" in "".join(capsys.readouterr())
    assert not database.exists()


def test_no_database_no_backup(empty_home: Path, capsys: Printed) -> None:
    assert main(["backup", "copy.db"]) == 1
    assert "No conversations yet." in capsys.readouterr().err
    assert not Path("copy.db").exists()
    assert not empty_home.exists()


BULLPEN = (sys.executable, "-m", "bullpen")
READING = (
    ("sessions",),
    ("sessions", "show"),
    ("sessions", "search", "the"),
    ("sessions", "export", "--format", "json"),
    ("fsck",),
    ("explain",),
)


@pytest.mark.foreign
def test_reading_commands_print_the_same_on_read_only_media(bullpen: Bullpen, environment: dict[str, str]) -> None:
    data = Path(environment["BULLPEN_HOME"])
    with SqliteStore(data / "conversations.db") as store:
        write_example(store)
    usual = [bullpen(*words) for words in READING]
    before = {file.name: file.read_bytes() for file in data.iterdir()}

    seen = [run_on_read_only_media(data, [*BULLPEN, *words], environment) for words in READING]

    assert [(one.returncode, one.stdout) for one in seen] == [(one.returncode, one.stdout) for one in usual]
    assert {one.returncode for one in seen} == {0}
    assert {file.name: file.read_bytes() for file in data.iterdir()} == before
    refused = run_on_read_only_media(data, [*BULLPEN, "sessions", "rename", "last", "new"], environment)
    assert refused.returncode == 1
    assert "is not writable" in refused.stderr
