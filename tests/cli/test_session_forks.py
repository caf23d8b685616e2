"""bullpen sessions fork, on real files and disks."""

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID
from bullpen.testing.read_only import run_on_a_full_disk, run_on_read_only_media

Printed = pytest.CaptureFixture[str]
Bullpen = Callable[..., "CompletedProcess[str]"]


def ids(database: Path) -> list[str]:
    with SqliteStore(database) as store:
        return [conversation.id for conversation in store.conversations()]


def refused(capsys: Printed, *words: str) -> str:
    assert main(["sessions", "fork", *words]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("named", [EXAMPLE_ID, "quiet", "last"])
def test_a_fork_is_printed_with_how_to_open_it(database: Path, capsys: Printed, named: str) -> None:
    assert main(["sessions", "fork", named, "--at", "4"]) == 0
    out = capsys.readouterr().out

    fork = ids(database)[0]
    assert out.startswith(f"Forked {EXAMPLE_ID} at message 4 as {fork}: Where do we start? (fork at #4)\n")
    assert "It has 4 messages." in out
    assert f"bullpen sessions show {fork}\n" in out
    assert f"bullpen chat TEAM.toml --resume {fork}\n" in out
    assert main(["sessions", "show", fork]) == 0
    assert "#4  Max → sarah" in capsys.readouterr().out


def test_without_a_number_it_is_forked_at_its_last_message(database: Path, capsys: Printed) -> None:
    assert main(["sessions", "fork"]) == 0

    assert f"Forked {EXAMPLE_ID} at message 6 as " in capsys.readouterr().out


def test_what_is_told_to_be_typed_works(
    bullpen: Bullpen, write_team: Callable[..., Path], tmp_path: Path, home: Path
) -> None:
    team = write_team(max="Done.")
    assert bullpen("run", str(team), "Begin.", "--trust").returncode == 0
    database = home / "data" / "conversations.db"
    forked = bullpen("sessions", "fork", "last", "--at", "1", "--db", str(database))
    assert forked.returncode == 0, forked.stderr

    command = forked.stdout.splitlines()[-1].removeprefix("Continue it with: bullpen ").split()
    chat = bullpen(*command, "--trust", "--plain", stdin="And then?\n")

    assert chat.returncode == 0, chat.stderr
    with SqliteStore(database) as store:
        said = [stored.message.content for stored in store.messages(ids_of_fork(store))]
    assert said == ["Begin.", "And then?", "Done."]


def ids_of_fork(store: SqliteStore) -> str:
    return next(one.id for one in store.conversations() if one.id.startswith("forked-"))


def test_wrong_numbers_and_names(database: Path, capsys: Printed) -> None:
    assert f"{EXAMPLE_ID} has 6 messages, so it cannot be forked at message 7." in refused(capsys, "last", "--at", "7")
    for wrong in ("0", "#3"):
        with pytest.raises(SystemExit):
            main(["sessions", "fork", "last", "--at", wrong])
        assert "--at: must be 1 or more" in capsys.readouterr().err
    assert "nobody" in refused(capsys, "nobody")
    with SqliteStore(database) as store:
        store.create("empty", team="t", team_file="", started_at=1)
    assert "Nothing was said in empty yet, so there is nothing to fork." in refused(capsys, "empty")
    assert sorted(ids(database)) == ["empty", EXAMPLE_ID]


def test_before_the_first_conversation(empty_home: Path, capsys: Printed) -> None:
    assert "No conversations yet." in refused(capsys, "last")
    assert not empty_home.exists()


def test_a_damaged_database_is_not_written_to(database: Path, capsys: Printed) -> None:
    with sqlite3.connect(database) as opened:
        opened.execute("UPDATE messages SET content = 'changed' WHERE id = 'm3'")
    opened.close()
    before = database.read_bytes()

    told = refused(capsys, EXAMPLE_ID)

    assert "is damaged: message 'm3' has changed since it was stored." in told
    assert "bullpen fsck" in told
    assert database.read_bytes() == before


@pytest.mark.foreign
def test_a_full_disk(tmp_path: Path, database: Path) -> None:
    folder = database.parent
    command = [sys.executable, "-m", "bullpen", "sessions", "fork", EXAMPLE_ID]

    done = run_on_a_full_disk(folder, [*command, "--db", str(folder / "full" / database.name)])

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "the disk or a quota is full. Free some space and try again." in done.stderr


@pytest.mark.foreign
def test_read_only_media(database: Path) -> None:
    command = [sys.executable, "-m", "bullpen", "sessions", "fork", EXAMPLE_ID, "--db", str(database)]

    done = run_on_read_only_media(database.parent, command)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "is not writable" in done.stderr
    assert ids(database) == [EXAMPLE_ID]
