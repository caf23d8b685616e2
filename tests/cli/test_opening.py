"""Opening a conversation again: its file is opened once, by whichever command."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from bullpen.testing.terminal import Terminal

Write = Callable[..., Path]
Bullpen = Callable[..., subprocess.CompletedProcess[str]]
AtTerminal = Callable[..., Terminal]

# Every Python process imports a module of this name when it starts.
COUNTING = """
import os, sys

def note(event, arguments):
    if event == "sqlite3.connect":
        with open(os.environ["OPENINGS"], "a") as file:
            file.write(f"{arguments[0]}\\n")

sys.addaudithook(note)
"""


@pytest.fixture
def left_behind(write_team: Write, bullpen: Bullpen) -> None:
    """Leave a conversation behind."""
    write_team(ada="Hello.")
    assert bullpen("run", "--trust", "team.toml", "Hi.").returncode == 0


@pytest.fixture
def openings(left_behind: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Leave a conversation behind, and return where every later connection to a database is noted."""
    opened: list[str] = []
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def noted(database: str, *args: Any, **keys: Any) -> sqlite3.Connection:
        opened.append(database)
        connection: sqlite3.Connection = connect(database, *args, **keys)
        return connection

    monkeypatch.setattr(sqlite3, "connect", noted)
    return opened


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--resume", "last", "Go on."),
        ("chat", "--resume", "last"),
        ("preview", "--session", "last", "--to", "ada"),
        ("sessions", "show", "last"),
    ],
    ids=" ".join,
)
def test_the_file_is_opened_once(openings: list[str], bullpen: Bullpen, words: tuple[str, ...]) -> None:
    done = bullpen(*words, stdin="Go on.\n")

    assert done.returncode == 0, done.stderr
    assert len(openings) == 1


def test_at_a_terminal_too(
    left_behind: None, tmp_path: Path, environment: dict[str, str], at_terminal: AtTerminal
) -> None:
    openings = tmp_path / "openings"
    (tmp_path / "sitecustomize.py").write_text(COUNTING)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(tmp_path), environment.get("PYTHONPATH")]))
    environment["OPENINGS"] = str(openings)

    with at_terminal("chat", "--plain", "--resume", "last") as terminal:
        terminal.wait_for("Hello.")
        terminal.press("\x04")
        assert terminal.leave() == 0

    assert len(openings.read_text().splitlines()) == 1


def test_a_team_that_is_not_trusted_leaves_the_file_closed(
    openings: list[str], write_team: Write, bullpen: Bullpen, home: Path
) -> None:
    write_team(ada="Another one.")

    refused = bullpen("run", "--resume", "last", "Go on.")

    assert refused.returncode == 1
    assert "--trust" in refused.stderr
    assert len(openings) == 1
    files = [file.name for file in (home / "data").glob("conversations.db*") if file.is_file()]
    assert files == ["conversations.db"]


def elsewhere(tmp_path: Path, write_team: Write) -> Path:
    """Return another folder with a team of its own."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    write_team(ada="Hello.").replace(other / "team.toml")
    return other


def test_last_is_the_last_one_here(tmp_path: Path, write_team: Write, bullpen: Bullpen) -> None:
    elsewhere(tmp_path, write_team)
    write_team(ada="Hello.")
    assert bullpen("run", "--trust", "team.toml", "Here.").returncode == 0
    assert bullpen("run", "--trust", "elsewhere/team.toml", "There.").returncode == 0

    assert "Here." in bullpen("sessions", "show", "last").stdout
    assert "There." not in bullpen("run", "--resume", "last", "More.").stdout
    unrelated = tmp_path.with_name(f"{tmp_path.name}-unrelated")
    unrelated.mkdir()
    refused = bullpen("run", "--resume", "last", "Go on.", cwd=unrelated)
    assert refused.returncode == 1
    assert "has begun yet. The latest of all is" in refused.stderr


def test_last_is_the_last_one_of_any_team_file_here_unless_one_is_named(write_team: Write, bullpen: Bullpen) -> None:
    team = write_team(ada="Hello.")
    copy(team, team.with_name("other.toml"))
    for file in ("team.toml", "other.toml"):
        assert bullpen("run", "--trust", file, f"With {file}.").returncode == 0

    assert "With other.toml." in bullpen("sessions", "show", "last").stdout
    assert bullpen("run", "--trust", "--resume", "last", "team.toml", "Also with team.toml.").returncode == 0
    assert "Also with team.toml." in bullpen("sessions", "show").stdout
    assert bullpen("run", "--trust", "--resume", "last", "other.toml", "Again.").returncode == 0
    assert bullpen("run", "--trust", "--resume", "last", "More.").returncode == 0
    said = bullpen("sessions", "show", "last").stdout
    assert "With other.toml." in said
    assert "More." in said


def test_another_teams_agents_get_a_conversation_only_if_a_person_wants_it(
    tmp_path: Path, write_team: Write, bullpen: Bullpen, at_terminal: AtTerminal
) -> None:
    elsewhere(tmp_path, write_team)
    write_team(ada="Hello.")
    assert bullpen("run", "--trust", "team.toml", "Secret of client A.").returncode == 0
    stored = bullpen("sessions", "list", "--json").stdout
    id_ = json.loads(stored)[0]["id"]

    refused = bullpen("run", "--trust", "--resume", id_, "elsewhere/team.toml", "Go on.")

    assert refused.returncode == 1
    assert "The agents of elsewhere/team.toml would read what was said in it." in refused.stderr
    assert "add --team-changed" in refused.stderr
    with at_terminal("chat", "--plain", "--trust", "--resume", id_, "elsewhere/team.toml") as terminal:
        terminal.wait_for("Continue? [y/N]")
        terminal.press("n\r")
        terminal.wait_for("Nothing was changed.")
    assert bullpen("run", "--trust", "--team-changed", "--resume", id_, "elsewhere/team.toml", "Go.").returncode == 0


def test_nothing_is_left_of_a_conversation_in_which_nothing_was_said(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")
    assert bullpen("run", "--trust", "team.toml", "Hi.").returncode == 0

    assert bullpen("run", "--as", "nobody", "team.toml", "Hi.").returncode == 1
    assert bullpen("run", "team.toml", " ").returncode == 1
    assert bullpen("chat", "team.toml", stdin="").returncode == 0

    assert len(json.loads(bullpen("sessions", "list", "--json").stdout)) == 1
    assert "Hello." in bullpen("sessions", "show", "last").stdout


def test_the_same_team_file_may_be_spelled_in_another_way(tmp_path: Path, write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")
    (tmp_path / "sub").mkdir()
    assert bullpen("run", "--trust", "team.toml", "Hi.").returncode == 0

    done = bullpen("run", "--resume", "last", "sub/../team.toml", "More.")

    assert done.returncode == 0, done.stderr


def test_an_archived_conversation_is_not_the_last_one(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")
    for text in ("First.", "Second."):
        assert bullpen("run", "--trust", "team.toml", text).returncode == 0
    assert bullpen("sessions", "archive", "last").returncode == 0

    assert "First." in bullpen("sessions", "show", "last").stdout
    assert "Second." not in bullpen("run", "--resume", "last", "More.").stdout
    assert len(json.loads(bullpen("sessions", "list", "--json").stdout)) == 1


def test_nobody_is_told_to_continue_what_is_not_kept(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")

    done = bullpen("chat", "--trust", "team.toml", stdin="")

    assert "Nothing was said, so nothing is kept." in done.stderr
    assert "--resume" not in done.stderr
