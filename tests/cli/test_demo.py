"""`bullpen demo`: the story is told to its end, and what it says about itself is true."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.cli.demo_story import SCRIPTS
from bullpen.testing.terminal import Terminal

Bullpen = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def demo_database(environment: dict[str, str]) -> tuple[str, str]:
    return "--db", str(Path(environment["BULLPEN_HOME"], "demo", "conversations.db"))


def test_the_story_is_told_and_stays_in_a_store_of_its_own(bullpen: Bullpen, demo_database: tuple[str, str]) -> None:
    done = bullpen("demo", "--fast")

    assert (done.returncode, done.stderr) == (0, "")
    assert Path(demo_database[1]).parents[1].stat().st_mode & 0o777 == 0o700
    assert "#6 → you" in done.stdout
    assert json.loads(bullpen("sessions", "--json", *demo_database).stdout)[0]["messages"] == 6
    assert "Fixed" in bullpen("sessions", "show", *demo_database).stdout
    assert bullpen("explain", "3", "--diff", "mei", *demo_database).returncode == 0
    assert "What it did not see" in bullpen("explain", "5", *demo_database).stdout
    assert bullpen("sessions", "--json").stdout == "[]\n"


@pytest.mark.parametrize("options", [(), ("--db", "other file.db")])
def test_every_command_at_the_end_works(
    options: tuple[str, ...], bullpen: Bullpen, tmp_path: Path, environment: dict[str, str]
) -> None:
    done = bullpen("demo", "--fast", *options)

    commands = [line.strip() for line in done.stdout.partition("Look around:")[2].splitlines() if line.startswith("  ")]
    assert [command.split()[1] for command in commands[:2]] == ["sessions", "explain"]
    word_for_word = done.stdout.partition("Word for word: ")[2].partition("\n")[0]
    for command in (word_for_word, *commands[:2]):
        shell = f"{sys.executable} -m bullpen {command.removeprefix('bullpen ')}"
        ran = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert ran.returncode == 0


def test_what_the_agents_say_of_their_program_is_true(bullpen: Bullpen, environment: dict[str, str]) -> None:
    bullpen("demo", "--fast")
    program = Path(environment["BULLPEN_HOME"], "demo", "tea.py")
    tried = SCRIPTS["ben"][1][-3]["tool"]

    good = subprocess.run([sys.executable, str(program), "0"], capture_output=True, encoding="utf-8", check=False)
    bad = subprocess.run([sys.executable, str(program), "soon"], capture_output=True, encoding="utf-8", check=False)

    assert (good.returncode, good.stdout) == (0, "Your tea is ready. 🍵\n")
    assert (bad.returncode, bad.stderr.strip()) == (1, tried["output"])


def test_ctrl_c_leaves_in_the_middle(
    at_terminal: Callable[..., Terminal], bullpen: Bullpen, demo_database: tuple[str, str]
) -> None:
    with at_terminal("demo") as terminal:
        terminal.wait_for("ada  turn 1")
        terminal.press("\x03")
        assert terminal.leave() == 130

    assert json.loads(bullpen("sessions", "--json", *demo_database).stdout)[0]["running"] == 0
