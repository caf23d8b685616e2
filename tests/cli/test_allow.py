"""A hand-over that needs a yes: at a terminal, and where nobody can be asked."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.testing.terminal import Terminal

Bullpen = Callable[..., "subprocess.CompletedProcess[str]"]
AtTerminal = Callable[..., Terminal]
READY = "kim ▸"


@pytest.fixture(autouse=True)
def team(write_team: Callable[..., Path]) -> Path:
    """Ada asks ben, who has full permissions."""
    file = write_team(ada="Do it. [NEXT: ben]", ben="I have done it.")
    file.write_text(f'{file.read_text(encoding="utf-8")}permissions = "full"\n', encoding="utf-8")
    return file


def test_y_is_a_yes(at_terminal: AtTerminal) -> None:
    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("x\n")
        terminal.wait_for("? ada hands over to ben, which has full permissions", "1 Allow        /allow 2")
        # Drawn when the keys answer.
        terminal.wait_for("3 Don't allow  /dismiss 2", "\n1 Allow  3 Don't allow")
        terminal.press("/queue\n")
        terminal.wait_for("turn 2  ben: /allow or /dismiss?")
        assert "I have done it." not in terminal.screen.text
        terminal.press("y\n")
        terminal.wait_for("turn 2: allowed", "I have done it.")


def test_y_is_not_a_yes_if_it_could_mean_another_question(at_terminal: AtTerminal) -> None:
    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("one @ada\n")
        terminal.wait_for("/allow 2")
        terminal.press("two @ada\n")
        terminal.wait_for("/allow 4", "\n1 Allow  3 Don't allow")
        terminal.press("y\n")
        terminal.wait_for("2 decisions wait for you. Which one do you mean: /allow 4 or /allow 2?")
        assert "I have done it." not in terminal.screen.text
        terminal.press("/dismiss 2\n")
        one_left = "◆ waits for you: ben (turn 4)"
        terminal.wait_until(lambda: one_left in [line.strip() for line in terminal.screen.text.splitlines()])
        terminal.press("y\n")
        terminal.wait_for("turn 4: allowed", "I have done it.")


def test_unattended_it_waits_and_the_exit_code_says_so(bullpen: Bullpen, team: Path) -> None:
    done = bullpen("run", "--trust", "x")

    assert done.returncode == 3
    assert "? ada hands over to ben, which has full permissions (turn 2). That needs your yes." in done.stdout
    assert "I have done it." not in done.stdout
    assert "Waiting for your yes: turn 2 of ben. In chat: /allow or /dismiss." in done.stderr
    again = bullpen("run", "--resume", "last")
    assert again.returncode == 3, "to continue is not a yes"
    assert "I have done it." not in again.stdout
    named = bullpen("run", "--resume", "last", "[NEXT: ben] Yes, do it.")
    assert "I have done it." in named.stdout


def test_with_may_address_nobody_is_asked(bullpen: Bullpen, team: Path) -> None:
    text = team.read_text(encoding="utf-8").replace('name = "ada"', 'name = "ada"\nmay_address = ["ben"]')
    team.write_text(text, encoding="utf-8")

    done = bullpen("run", "--trust", "x")

    assert done.returncode == 0
    assert "I have done it." in done.stdout
