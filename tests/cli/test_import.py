"""bullpen import, with real files."""

import json
import os
import re
from pathlib import Path

import pytest

from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, EXAMPLE_TEAM

Printed = pytest.CaptureFixture[str]

SNAPSHOT = {
    "version": 1,
    "messages": [{"id": "msg-1", "content": "hello", "speaker": {"roleId": "kai", "type": "human"}, "timestamp": 5}],
    "teamTask": None,
    "timestamp": 9,
}


@pytest.fixture
def snapshot(empty_home: Path) -> Path:
    path = Path("snapshot.json")
    path.write_text(json.dumps(SNAPSHOT))
    return path


def test_a_file_becomes_a_conversation(empty_home: Path, snapshot: Path, capsys: Printed) -> None:
    assert main(["import", str(snapshot)]) == 0

    said = re.fullmatch(
        r"Imported 1 message as (imported-\w+)\.\nRead it with: bullpen sessions show \1\n", capsys.readouterr().out
    )
    assert said is not None
    with SqliteStore(empty_home) as store:
        assert [stored.message.content for stored in store.messages(said[1])] == ["hello"]
        assert store.conversation(said[1]).team == "imported"
    assert main(["sessions", "show", said[1]]) == 0
    assert "#1  kai  1970-01-01 00:00\n  hello\n" in capsys.readouterr().out


def test_importing_twice_makes_two_and_says_so(empty_home: Path, snapshot: Path, capsys: Printed) -> None:
    main(["import", str(snapshot)])
    first = capsys.readouterr().out.split()[4].rstrip(".")

    assert main(["import", str(snapshot)]) == 0

    assert f"The same messages are stored already, as {first}. This is another copy." in capsys.readouterr().out
    with SqliteStore(empty_home) as store:
        assert len(store.conversations()) == 2


def test_with_a_team(empty_home: Path, snapshot: Path, capsys: Printed) -> None:
    team_file = Path("team.toml")
    team_file.write_text(EXAMPLE_TEAM)

    assert main(["import", str(snapshot), "--team", "team.toml"]) == 0
    with SqliteStore(empty_home) as store:
        (conversation,) = store.conversations()
    assert (conversation.team, conversation.team_file, conversation.team_path) == (
        "Builders",
        EXAMPLE_TEAM,
        str(team_file.absolute()),
    )

    assert main(["import", str(snapshot), "--team", "Others"]) == 0
    with SqliteStore(empty_home) as store:
        assert {one.team for one in store.conversations()} == {"Builders", "Others"}


def test_what_is_exported_can_be_imported(database: Path, capsys: Printed) -> None:
    main(["sessions", "export", "last", "--output", "out.json", "--prompts"])

    assert main(["import", "out.json", "--db", "new.db"]) == 0

    with SqliteStore(database) as old, SqliteStore("new.db") as new:
        (conversation,) = new.conversations()
        assert conversation.team == "Builders"
        # A team file says which programs run, so none comes in with a conversation.
        assert conversation.team_file == ""
        before = [stored.message for stored in old.messages(EXAMPLE_ID)]
        assert [stored.message for stored in new.messages(conversation.id)] == before


@pytest.mark.parametrize(
    ("content", "team", "said"),
    [
        ("{", None, "This cannot be imported"),
        ('{"version": 1, "messages": [{"id": "\\u001b[31m"}]}', None, "This cannot be imported"),
        (None, None, "snapshot.json cannot be read: No such file or directory. Nothing was written."),
        (json.dumps(SNAPSHOT), "missing.toml", "There is no team file missing.toml. Nothing was written."),
        (json.dumps(SNAPSHOT), "bad.toml", "bad.toml cannot be used."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    empty_home: Path, snapshot: Path, capsys: Printed, content: str | None, team: str | None, said: str
) -> None:
    Path("bad.toml").write_text("name = 1")
    snapshot.unlink() if content is None else snapshot.write_text(content)

    assert main(["import", str(snapshot), *([] if team is None else ["--team", team])]) == 1

    error = capsys.readouterr().err
    assert said in error
    assert "\x1b" not in error
    assert not empty_home.exists()


@pytest.mark.parametrize("words", [["import"], ["prices", "--import"]])
def test_nobody_waits_for_the_other_end_of_a_pipe(empty_home: Path, words: list[str], capsys: Printed) -> None:
    os.mkfifo("pipe.json")

    assert main([*words, "pipe.json"]) == 1
    assert capsys.readouterr().err.startswith("bullpen: pipe.json cannot be read: it is not a regular file.")
    assert not empty_home.exists()
