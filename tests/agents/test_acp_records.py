"""What agents that speak ACP tell of a call, as a question to people."""

from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.acp_records import FOLDERS, ToolCall
from bullpen.agents.acp_words import Dialect
from bullpen.agents.driver import Opening
from bullpen.agents.gate import is_free
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
        ({"command": "git", "args": ["push", "-f"]}, "git push -f", {"args": ["push", "-f"]}),
        ({"command": ["git", "push x"]}, "git 'push x'", {}),
        ({"command": "pytest", "stdin": "x", "cwd": "sub", "description": "d"}, "pytest", {"stdin": "x"}),
        ({"command": "a && b", "commands": ["a", "b"]}, "a && b", {}),
        ({"command": "a", "commands": ["a", "b"]}, "a", {"commands": ["a", "b"]}),
        ({"command": "a", "cwd": {"path": "/etc"}}, "a", {"cwd": {"path": "/etc"}}),
        ({}, "a title", {"title": "a title"}),
        ({"command": {"x": "touch"}}, "a title", {"command": {"x": "touch"}, "title": "a title"}),
    ],
)
def test_a_command_has_all_its_arguments_and_what_else_is_given(
    given: dict[str, Any], command: str, details: dict[str, Any]
) -> None:
    question = asked("execute", given)

    assert (question.kind, question.command, question.details) == ("command", command, details)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"rawInput": {"command": ""}},
        {"rawInput": {"commands": ["touch x"]}},
        {"rawInput": {"command": "ls", "commands": ["touch x"]}},
        {"rawInput": {"command": {"x": "touch"}}},
        {"rawInput": {"script": "touch x"}},
        {"rawInput": {"command": "ls", "args": ["; touch x"]}},
        {"rawInput": {"command": "ls", "cwd": {"path": "/etc"}}},
        {"rawInput": "touch x"},
        {"rawInput": ["touch", "x"]},
        {"content": [{"type": "content", "content": {"type": "text", "text": "$ touch x"}}]},
    ],
)
def test_a_title_is_never_free_and_neither_is_what_is_not_understood(told: dict[str, Any], tmp_path: Path) -> None:
    call = ToolCall(id="1")
    call.learn({"kind": "execute", "title": "ls", **told})
    assert not is_free(call.question("q", str(tmp_path)), str(tmp_path))


def test_gemini_tells_its_commands_as_titles_with_nothing_beside_them(tmp_path: Path) -> None:
    call = ToolCall(id="1", titles_are_commands=True)
    call.learn({"kind": "execute", "title": "ls"})
    assert is_free(call.question("q", str(tmp_path)), str(tmp_path))

    call.learn({"rawInput": "touch x"})
    assert not is_free(call.question("q", str(tmp_path)), str(tmp_path))


@pytest.mark.parametrize(("command", "is_usual"), [("touch x", False), (["touch", "x"], False), ("create", True)])
def test_an_edit_with_a_command_beside_it_is_more_than_an_edit(command: object, is_usual: bool, tmp_path: Path) -> None:
    call = ToolCall(id="1")
    diff = [{"type": "diff", "path": str(tmp_path / "a.txt"), "oldText": "", "newText": "x"}]
    call.learn({"kind": "edit", "title": "Edit", "content": diff, "rawInput": {"command": command}})
    assert is_free(call.question("q", str(tmp_path)), str(tmp_path)) is is_usual


@pytest.mark.parametrize("name", FOLDERS)
def test_the_folder_of_a_command_is_known_under_every_name(name: str) -> None:
    assert asked("execute", {"command": "ls", name: "sub"}).folder == "/x/sub"


def test_a_folder_that_was_told_before_the_question_is_not_forgotten_in_it() -> None:
    call = ToolCall(id="1")
    call.learn({"kind": "execute", "title": "bash", "rawInput": {"cwd": "/x"}})
    call.learn({"title": "ls", "rawInput": {"command": "ls", "workdir": "sub"}})
    call.learn({"title": "ls", "rawInput": {"command": "ls"}})

    assert call.question("q", "/x").folder == "/x/sub"


def test_what_is_not_surely_one_folder_is_none_in_which_anything_is_free(tmp_path: Path) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    folder = tmp_path / "project"
    (folder / "link").symlink_to(tmp_path / "elsewhere" / "deep")

    for given in ({"workdir": "link/.."}, {"workdir": "sub", "cwd": str(folder)}, {"workdir": "link"}):
        call = ToolCall(id="1")
        call.learn({"kind": "execute", "title": "ls", "rawInput": {"command": "ls", **given}})
        assert not is_free(call.question("q", str(folder)), str(folder))


@pytest.mark.parametrize("is_early", [False, True])
def test_a_command_is_asked_for_when_it_is_known_where_it_would_run(is_early: bool) -> None:
    driver = AcpDriver(
        Opening(prompt="x", folder="/x", permissions="ask"), Dialect(modes=(), needs_mode=False, places_apart=True)
    )
    for number, result in ((1, {"protocolVersion": 1}), (2, {"sessionId": "s"})):
        list(driver.parse({"id": number, "result": result}))
    call = {"toolCallId": "c", "kind": "execute", "title": "pytest"}
    options = [{"optionId": "y", "kind": "allow_once", "name": "Yes"}]
    question = {"toolCall": {**call, "rawInput": {"command": "pytest"}}, "options": options}
    place = {**call, "sessionUpdate": "tool_call_update", "rawInput": {"command": "pytest", "workdir": "sub"}}
    records = [
        {"method": "session/update", "params": {"sessionId": "s", "update": place}},
        {"method": "session/request_permission", "id": 7, "params": question},
    ]

    events = [event for record in (records if is_early else reversed(records)) for event in driver.parse(record)]

    assert [event.folder for event in events if isinstance(event, ApprovalAsked)] == ["/x/sub"]
