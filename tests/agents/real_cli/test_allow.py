"""Commands that a team allows run in the genuine CLIs, and no others do."""

from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.turn import Turn, run, write_call

from bullpen.agents import Permission
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.models import ToolCall
from bullpen.turn_events import ToolFinished

OTHER = "python3 -c 'print(1)'"


def shell_call(cli: str, command: str, **others: Any) -> ToolCall:
    if cli == "claude":
        return ToolCall(name="Bash", arguments={"command": command, "description": "x", **others})
    background: dict[str, Any] = {"is_background": False} if cli == "qwen" else {}
    return ToolCall(name="run_shell_command", arguments={"command": command, **background, **others})


def outcomes(turn: Turn, *calls: ToolCall, permissions: Permission) -> list[bool]:
    """Return for each call, made one after the other, whether it was done."""
    script = [Scripted(tool_calls=(call,)) for call in calls]
    run(turn.run(*script, Scripted(text="done"), permissions=permissions, allow=["git --version", "expr 1"]))
    return [not finished.failed for finished in turn.of(ToolFinished)]


COMMANDS = {
    "git --version": True,
    "expr 1 + 1": True,
    OTHER: False,
    "git init": False,
    f"expr 1; {OTHER}": False,
    f"expr 1 && {OTHER}": False,
    f"expr 1\n{OTHER}": False,
    "expr 1 $(touch made.txt)": False,
    "expr 1 `touch made.txt`": False,
    'expr 1 "$(touch made.txt)"': False,
    "expr 1 <(touch made.txt)": False,
}


@pytest.mark.parametrize(
    ("cli", "permissions"),
    [("claude", "read-only"), ("claude", "edit"), ("gemini", "edit"), ("qwen", "edit")],
)
def test_an_allowed_command_runs_and_another_one_does_not(cli: str, permissions: Permission, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)

    done = outcomes(turn, *(shell_call(cli, command) for command in COMMANDS), permissions=permissions)

    assert dict(zip(COMMANDS, done, strict=True)) == COMMANDS
    assert list(turn.cwd.iterdir()) == []


@pytest.mark.parametrize("cli", ["claude", "gemini", "qwen"])
def test_allowed_commands_do_not_let_a_cli_write_under_read_only(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)

    done = outcomes(
        turn,
        write_call(cli, turn.cwd / "made.txt"),
        shell_call(cli, "expr 1 > made.txt"),
        shell_call(cli, 'X="$(touch made.txt)" expr 1'),
        shell_call(cli, "touch made.txt", x={"command": "expr 1 "}),
        permissions="read-only",
    )

    assert done == [False] * 4
    assert list(turn.cwd.iterdir()) == []
