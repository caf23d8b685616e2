"""`bullpen preview`: what an agent would be given, and nothing changes by looking."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import copy

Write = Callable[..., Path]
Bullpen = Callable[..., "subprocess.CompletedProcess[str]"]

NO_NOTE = "hand_over_note = false\n"


def test_a_new_conversation(write_team: Write, bullpen: Bullpen, environment: dict[str, str]) -> None:
    write_team(NO_NOTE, ada="Yes.")

    done = bullpen("preview", "--to", "ada", "--message", "Hello [TEAM_TASK: greet]")

    assert done.returncode == 0
    assert done.stdout == (
        "--- prompt for ada\ngreet\n\nkim: Hello\n--- 17 of 786,432 bytes\n"
        "team task            5\nmessage             10\nseparators           2\n0 messages of history\n"
    )
    assert not Path(environment["BULLPEN_HOME"], "conversations.db").exists()


def test_it_is_what_is_sent_then(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="I see. [NEXT: ben]", ben="So do I.")
    bullpen("run", "--trust", "team.toml", "First.")
    before = bullpen("sessions", "--json").stdout

    seen = json.loads(bullpen("preview", "--to", "ada", "--session", "last", "--message", "Again?", "--json").stdout)

    assert bullpen("sessions", "--json").stdout == before
    bullpen("run", "--resume", "last", "Again? [NEXT: ada]")
    sent = json.loads(bullpen("explain", "3", "--json").stdout)
    assert seen["prompt"] == sent["prompt"]
    assert seen["report"]["total_bytes"] == sent["total_bytes"]


def test_a_member_that_sees_only_what_is_addressed_to_it(write_team: Write, bullpen: Bullpen) -> None:
    file = write_team(NO_NOTE, ada="I see.", ben="So do I.")
    file.write_text(file.read_text().replace('name = "ada"\n', 'name = "ada"\nvisibility = "addressed"\n'))
    new = bullpen("preview", "--to", "ada", "--message", "Hello")
    bullpen("run", "--trust", "team.toml", "Secret [NEXT: ben]")

    again = bullpen("preview", "--to", "ada", "--session", "last", "--message", "Again?")

    assert (new.returncode, again.returncode) == (0, 0)
    assert "kim: Hello\n" in new.stdout
    assert "Secret" not in again.stdout
    assert "kim: Again?" in again.stdout


def test_the_last_conversation_here_is_meant_if_none_is_named(
    write_team: Write, bullpen: Bullpen, tmp_path: Path
) -> None:
    file = write_team(NO_NOTE, ada="I see.")
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
        copy(file, folder)
    bullpen("run", "--trust", "First.", cwd=here)

    last = bullpen("preview", "--to", "ada", cwd=here)
    again = bullpen("preview", "--to", "ada", "team.toml", "Again?", cwd=here)
    new = bullpen("preview", "--to", "ada", "--session", "new", "--message", "Again?", cwd=here)
    other = bullpen("preview", "--to", "ada", "Again?", cwd=elsewhere)

    assert "kim: First." in last.stdout
    assert "ada: I see." in again.stdout
    assert "kim: Again?" in again.stdout
    assert ", the last one here; " in last.stderr
    assert ", the last one of team.toml; " in again.stderr
    for begun in (new, other):
        assert (begun.returncode, begun.stderr) == (0, "")
        assert "First." not in begun.stdout


def test_a_team_file_that_is_named_means_none_of_another_one(
    write_team: Write, bullpen: Bullpen, tmp_path: Path
) -> None:
    copy(write_team(NO_NOTE, ada="I see."), tmp_path / "two.toml")
    bullpen("run", "--trust", "team.toml", "First.")

    last = bullpen("preview", "--to", "ada", "--session", "last", "two.toml", "Again?")
    usual = bullpen("preview", "--to", "ada", "two.toml", "Again?")

    assert (last.returncode, last.stdout) == (1, "")
    assert "No conversation of two.toml has begun yet. To see a prompt in a new one: --session new" in last.stderr
    assert (usual.returncode, usual.stderr) == (0, "")
    assert "First." not in usual.stdout
    bullpen("run", "--trust", "two.toml", "Second.")
    bullpen("run", "--trust", "team.toml", "Third.")
    again = bullpen("preview", "--to", "ada", "--session", "last", "two.toml", "Again?")
    assert ("Second." in again.stdout, "Third." in again.stdout) == (True, False)


def test_a_word_that_is_not_a_file_is_the_message(write_team: Write, bullpen: Bullpen) -> None:
    write_team(NO_NOTE, ada="I see.")

    assert "kim: hi\n" in bullpen("preview", "--to", "ada", "hi").stdout
    assert "kim: hi\n" in bullpen("preview", "team.toml", "hi", "--to", "ada").stdout
    assert "kim: hi\n" in bullpen("preview", "--to", "ada", "-", stdin="hi").stdout
    assert bullpen("preview", "--to", "ada", "hi", "--message", "hi").returncode == 2


def test_what_does_not_fit_is_told(write_team: Write, bullpen: Bullpen, tmp_path: Path) -> None:
    file = write_team(NO_NOTE, ada="x" * 100)
    file.write_text(file.read_text().replace('name = "ada"\n', 'name = "ada"\nmax_bytes = 60\n'))
    bullpen("run", "--trust", "team.toml", "First.")

    done = bullpen("preview", "--to", "ada", "--session", "last", "--message", "Again?")

    assert "0 messages of history, 2 older ones did not fit" in done.stdout
    assert "! CONTEXT trimmed to " in done.stdout


def test_what_cannot_be_previewed_is_said(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Yes.")

    assert "kim is a person" in bullpen("preview", "--to", "kim", "--message", "x").stderr
    assert "Add --message" in bullpen("preview", "--to", "ada").stderr
    assert bullpen("preview", "--to", "adda", "--message", "x").returncode == 1
    assert "no conversation" in bullpen("preview", "--to", "ada", "--session", "last").stderr.lower()
