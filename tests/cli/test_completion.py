"""Completion of commands and options, in the shells themselves."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.cli import COMMANDS
from bullpen.cli.sessions import ACTIONS
from bullpen.testing.terminal import Terminal

Bullpen = Callable[..., subprocess.CompletedProcess[str]]

# What is typed, with a Tab at each |, and what the command then gets.
TYPED = {
    "expl|": "explain",
    "sessions sho|": "sessions show",
    "sessions show la|": "sessions show last",
    "run --tru|": "run --trust",
    "--debug reh|": "--debug rehearse",
    "sessions export --format ht|": "sessions export --format html",
    "init --template deb|": "init --template debate",
    "check my-t|": "check my-team.toml",
    "completion fi|": "completion fish",
    "help sess|": "help sessions",
    "--vers|": "--version",
}
SHELLS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
BEGINNING = {
    "bash": "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; source ./script",
    "zsh": "unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D; source ./script",
}


@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.foreign)])
def test_a_shell_completes(shell: str, bullpen: Bullpen, tmp_path: Path, environment: dict[str, str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(bullpen("completion", shell).stdout)
    (tmp_path / "my-team.toml").touch()

    with Terminal(SHELLS[shell], env={**environment, "PS1": "$ "}, cwd=tmp_path, columns=200) as terminal:
        terminal.press(f"{BEGINNING[shell]}; bullpen() {{ echo \"got <${{*}}>\"; }}; echo rea''dy\n")
        terminal.wait_for("ready")
        for typed, got in TYPED.items():
            terminal.press(f"bullpen {typed}".replace("|", "\t"))
            terminal.wait_for(f"bullpen {got}")
            terminal.press("\n")
            terminal.wait_for(f"got <{got}>")


@pytest.mark.foreign
def test_fish_completes(bullpen: Bullpen, tmp_path: Path, environment: dict[str, str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    (tmp_path / "script").write_text(bullpen("completion", "fish").stdout)
    (tmp_path / "my-team.toml").touch()

    for typed, got in TYPED.items():
        program = f"source ./script; complete -C 'bullpen {typed.replace('|', '')}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", program],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [got.split()[-1]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_action_can_be_completed(shell: str, bullpen: Bullpen) -> None:
    script = bullpen("completion", shell).stdout

    assert all(name in script for name in [*COMMANDS, *(f"sessions/{action}" for action in ACTIONS)])
