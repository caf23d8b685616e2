"""What agents that speak ACP tell of a call, as a question to people."""

from typing import Any

import pytest

from bullpen.agents.acp_records import ToolCall
from bullpen.turn_events import ApprovalAsked


def asked(kind: str, given: dict[str, Any], name: str = "") -> ApprovalAsked:
    call = ToolCall(id="1", name=name)
    call.learn({"kind": kind, "title": "a title", "rawInput": given})
    return call.question("q", "/x")


def test_the_command_of_another_tool_than_a_shell_is_not_a_command() -> None:
    question = asked("other", {"command": "pytest", "host": "prod", "stdin": "rm -rf /"}, "mcp__ssh__run")

    assert (question.kind, question.tool, question.command) == ("tool", "mcp__ssh__run", "")
    assert question.details == {"title": "a title", "command": "pytest", "host": "prod", "stdin": "rm -rf /"}


@pytest.mark.parametrize(
    ("given", "command", "details"),
    [
        ({"command": "git", "args": ["push", "-f"]}, "git push -f", {}),
        ({"command": ["git", "push x"]}, "git 'push x'", {}),
        ({"command": "pytest", "stdin": "x", "cwd": "sub", "description": "d"}, "pytest", {"stdin": "x"}),
        ({}, "a title", {}),
    ],
)
def test_a_command_has_all_its_arguments_and_what_else_is_given(
    given: dict[str, Any], command: str, details: dict[str, Any]
) -> None:
    question = asked("execute", given)

    assert (question.kind, question.command, question.details) == ("command", command, details)
