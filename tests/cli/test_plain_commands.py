"""What can be typed in the plain chat besides messages."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from bullpen.cli.plain.typed_line import HANDLERS
from bullpen.view.commands import COMMANDS, SHOWN

Write = Callable[..., Path]
Bullpen = Callable[..., "subprocess.CompletedProcess[str]"]


def test_every_command_that_shows_something_has_a_handler() -> None:
    assert set(HANDLERS) == {command.name for command in SHOWN}


def test_everything_that_is_shown(write_team: Write, bullpen: Bullpen, tmp_path: Path) -> None:
    write_team(ada="I like cookies.")
    lines = ["Good morning", "/who", "/queue", "/search cookies", "/search giraffe", "/prompt ada", "/explain"]

    done = bullpen("chat", "--trust", stdin="\n".join([*lines, "/export out.md", ""]))

    assert done.returncode == 0
    assert "\nkim: a person\nada: " in done.stdout
    assert "\nNo turn is running or waiting.\n" in done.stdout
    assert "\n#2 ada  " in done.stdout
    assert "\nNothing found for giraffe.\n" in done.stdout
    assert "\n--- prompt for ada\n" in done.stdout
    assert "\n  answers   #1 kim: Good morning\n" in done.stdout
    assert done.stdout.endswith("\nWritten to out.md.\n")
    assert "I like cookies." in (tmp_path / "out.md").read_text(encoding="utf-8")


def test_the_command_that_explain_names_reads_the_same_file(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="I like cookies.")

    done = bullpen("chat", "--trust", "--db", "other.db", stdin="Good morning\n/explain\n")

    named = " ".join(done.stdout.partition("Word for word: bullpen ")[2].split())
    assert "Good morning" in bullpen(*named.split()).stdout


def test_help_has_every_command_and_no_alias(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Yes.")

    done = bullpen("chat", "--trust", stdin="/help all\n")

    words = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  /")]
    assert sorted(words) == sorted(f"/{name}" for name in COMMANDS)


def test_a_path_or_a_lone_slash_is_a_message(write_team: Write, bullpen: Bullpen) -> None:
    write_team("hand_over_note = false\n", ada=[{"echo": True}])

    done = bullpen("chat", "--trust", stdin="/etc/hosts is gone\n/\n /who wrote it?\n")

    assert done.returncode == 0
    for text in ("/etc/hosts is gone", "/", "/who wrote it?"):
        assert f"\n  kim: {text}\n" in done.stdout


def test_commands_change_the_conversation_and_say_what_events_do_not(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada=[{"exit": 3}], ben="Here.")
    lines = ["/task build it", "/task", "/Task -", "/TASK", "/drop", "x", "/skip ada", "/Next Ben", "/go"]

    done = bullpen("chat", "--trust", stdin="\n".join([*lines, ""]))

    assert "\n  kim set the team's task: build it\nThe team's task: build it\n" in f"\n{done.stdout}"
    assert "\n  kim removed the team's task.\nThe team has no task." in done.stdout
    assert "\nNo turn is waiting.\n" in done.stdout
    assert "  /skip 1\n" in done.stdout
    assert "\n  asked: ben\n" in done.stdout
    assert "\n  Here.\n" in done.stdout


def test_what_is_wrong_with_a_command_is_said(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Yes.")
    lines = ["/next", "/hand", "/prompt", "/search", "/retry 7", "/cancel ada", "/prompt nobody", "/explain 9"]

    done = bullpen("chat", "--trust", stdin="\n".join([*lines, ""]))

    assert done.returncode == 1
    assert done.stdout.count("! ") == len(lines)
    assert "! ada is not working." in done.stdout


def test_diff_shows_what_a_turn_changed_as_long_as_that_is_short(bullpen: Bullpen, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    program = ["/bin/sh", "-c", "cat > /dev/null; seq 1000 > numbers.txt; echo Done."]
    member = f'[[member]]\nname = "ada"\ncommand = {json.dumps(program)}\ncwd = "work"\npermissions = "full"\n'
    (tmp_path / "team.toml").write_text(f'[[member]]\nname = "kim"\n{member}')

    done = bullpen("chat", "--trust", "--db", "other.db", stdin="/diff\nGo.\n/diff 1\n")

    assert "No change of files is recorded in " in done.stdout
    assert "  ± ada changed 1 file in turn 1 (+1,000).  /diff 1\n" in done.stdout
    assert "\nnumbers.txt  new, +1,000\n" in done.stdout
    assert "    296 + 296\n… There is more: bullpen diff 1 --session " in done.stdout
    named = " ".join(done.stdout.partition("There is more: bullpen ")[2].split())
    assert "1000 + 1000" in bullpen(*named.split()).stdout


def test_changes_lists_what_was_changed_and_how_to_see_it(bullpen: Bullpen, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    program = ["/bin/sh", "-c", "cat > /dev/null; echo more >> notes.txt; echo Done."]
    member = f'[[member]]\nname = "ada"\ncommand = {json.dumps(program)}\ncwd = "work"\npermissions = "full"\n'
    (tmp_path / "team.toml").write_text(f'[[member]]\nname = "kim"\n{member}')

    done = bullpen("chat", "--trust", "--db", "other.db", stdin="/changes\nGo.\nGo.\n/undo 2\n/changes\n/diff all\n")

    assert "No change of files is recorded in " in done.stdout
    listed = done.stdout.partition("turn 1 · ada")
    assert [" ".join(line.split()) for line in (listed[1] + listed[2]).splitlines()[:4]] == [
        "turn 1 · ada 1 file, +1 /diff 1",
        "turn 2 · ada 1 file, +1 /diff 2",
        "kim took back turn 2 1 file, −1",
        "All together 1 file, +1 /diff all",
    ]
    assert "All changes from turn 1 to turn 2 together: 1 file in " in " ".join(done.stdout.split())
