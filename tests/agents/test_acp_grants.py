"""What an agent that speaks ACP reports as done is what got a yes under that id, or its turn ends."""

from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.acp_words import Dialect
from bullpen.agents.driver import Opening
from bullpen.agents.gate import went_past
from bullpen.approvals import Answer
from bullpen.turn_events import ApprovalAsked, Event, Failed

Record = dict[str, Any]
YES, NO = Answer(verdict="yes"), Answer(verdict="no")
OPTIONS = [{"optionId": "y", "kind": "allow_once", "name": "Yes"}, {"optionId": "n", "kind": "reject_once"}]


def told(what: str = "tool_call_update", call: str = "c", **more: Any) -> Record:
    update = {"sessionUpdate": what, "toolCallId": call, **more}
    return {"method": "session/update", "params": {"sessionId": "s", "update": update}}


def asks(call: str = "c", **more: Any) -> Record:
    params = {"toolCall": {"toolCallId": call, **more}, "options": OPTIONS}
    return {"method": "session/request_permission", "id": 7, "params": params}


def shell(command: str) -> Record:
    return {"title": command, "kind": "execute", "rawInput": {"command": command}}


def written(path: str, new: str = "x") -> Record:
    return {"content": [{"type": "diff", "path": path, "oldText": "", "newText": new}]}


def text(words: str) -> list[Record]:
    return [{"type": "content", "content": {"type": "text", "text": words}}]


def ending(folder: Path, answer: Answer, *records: Record) -> Event | None:
    """Return how a turn ended, if it did."""
    opening = Opening(prompt="x", folder=str(folder), permissions="ask")
    driver = AcpDriver(opening, Dialect(modes=(), needs_mode=False))
    started: list[Record] = [{"id": 1, "result": {"protocolVersion": 1}}, {"id": 2, "result": {"sessionId": "s"}}]
    events: list[Event] = []
    for record in [*started, *records]:
        for event in driver.parse(record):
            events.append(event)
            if isinstance(event, ApprovalAsked):
                driver.answer(event.id, answer)
    return next((event for event in events if isinstance(event, Failed)), None)


TOUCH = shell("touch X")
OUTPUT = {"output": "ran", "exit_code": 0}
ENDED = {"id": 3, "result": {"stopReason": "end_turn"}}


@pytest.mark.parametrize(
    "after",
    [
        [told(rawOutput=OUTPUT)],
        [told(status="in_progress", content=text("ran"))],
        [told(status="in_progress"), told(status="failed", rawOutput={"output": "made", "exit_code": 1})],
        [told(status="failed", rawOutput={"metadata": {"exit": 0}})],
        [told("tool_call", "new", **TOUCH, status="completed")],
        [told("tool_call", "new", **(TOUCH | {"kind": "other"}), status="completed")],
        [told("tool_call", "new", title="touch X", status="completed")],
        [told("tool_call", "new", title="run", kind="read", rawInput={"command": ["touch", "X"]}, status="completed")],
    ],
)
def test_what_it_does_after_a_no_ends_its_turn(after: list[Record], tmp_path: Path) -> None:
    failed = ending(tmp_path, NO, told("tool_call", **TOUCH, status="pending"), asks(**TOUCH), *after)

    assert failed == went_past("touch X")


@pytest.mark.parametrize(
    "after",
    [
        [told(status="failed")],
        [told(status="failed", content=text("rejected by user"))],
        [told(status="failed", rawOutput={"message": "rejected", "code": "rejected"})],
        [told(status="failed", rawOutput="client interrupt")],
    ],
)
def test_what_was_refused_and_not_done_ends_nothing(after: list[Record], tmp_path: Path) -> None:
    assert ending(tmp_path, NO, told("tool_call", **TOUCH, status="pending"), asks(**TOUCH), *after) is None


@pytest.mark.parametrize("first", ["ls", "make it"])
@pytest.mark.parametrize(
    "after",
    [
        [told(**TOUCH, status="completed")],
        [told(status="in_progress", rawInput={"command": "touch X"}), told(status="completed")],
        [told(status="completed"), told("tool_call", **TOUCH, status="completed")],
    ],
)
def test_a_yes_holds_for_what_was_asked_and_for_one_use_of_its_id(
    first: str, after: list[Record], tmp_path: Path
) -> None:
    before = told("tool_call", **shell(first), status="pending"), asks(**shell(first))

    assert ending(tmp_path, YES, *before, *after) == went_past("touch X")


def test_the_same_command_under_the_same_id_is_another_use_that_needs_another_yes(tmp_path: Path) -> None:
    once = told("tool_call", **TOUCH, status="pending"), asks(**TOUCH), told(status="completed")

    assert ending(tmp_path, YES, *once, told(**TOUCH, status="completed"), *once) is None
    assert ending(tmp_path, YES, *once, told("tool_call", **TOUCH, status="completed")) == went_past("touch X")


def test_what_it_changes_in_a_call_after_the_question_is_not_what_got_the_yes(tmp_path: Path) -> None:
    elsewhere = told(status="completed", rawInput={"command": "touch X", "cwd": "/etc"})
    with_more = told(status="completed", rawInput={"command": "touch X", "env": {"PATH": "."}})
    as_before = told(status="completed", rawInput={"command": "touch X", "cwd": str(tmp_path), "timeout": 5})

    assert ending(tmp_path, YES, asks(**TOUCH), elsewhere) == went_past("touch X")
    assert ending(tmp_path, YES, asks(**TOUCH), with_more) == went_past("touch X")
    assert ending(tmp_path, YES, asks(**TOUCH), as_before) is None


@pytest.mark.parametrize("kind", ["read", "think", "other", "execute"])
def test_a_diff_is_an_edit_whatever_its_call_is_called(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / ".envrc")
    failed = ending(tmp_path, YES, told("tool_call", title="Look", kind=kind, status="completed", **written(path)))

    assert failed == went_past("Look")


def test_an_edit_is_of_the_files_and_the_text_that_got_the_yes(tmp_path: Path) -> None:
    asked = asks(title="Edit", kind="edit", **written(".envrc", "one\r\ntwo\n"))

    assert ending(tmp_path, YES, asked, told(status="completed")) is None
    assert ending(tmp_path, YES, asked, told(status="completed", **written(str(tmp_path / ".envrc"), "two"))) is None
    assert ending(tmp_path, YES, asked, told(status="completed", **written(".envrc", "evil"))) == went_past("Edit")
    assert ending(tmp_path, YES, asked, told(status="completed", **written(".env", "one"))) == went_past("Edit")


def test_a_text_of_a_running_call_is_an_output_if_nothing_is_asked(tmp_path: Path) -> None:
    running = told("tool_call", **TOUCH, status="in_progress", content=text("makes a file"))

    assert ending(tmp_path, YES, running, ENDED) == went_past("touch X")
    assert ending(tmp_path, YES, running, asks(**TOUCH), told(status="completed"), ENDED) is None


def test_what_only_reads_needs_no_yes_whatever_it_calls_a_command(tmp_path: Path) -> None:
    given = {"command": "view", "path": "/etc/hosts"}

    assert ending(tmp_path, NO, told("tool_call", title="x", kind="read", status="completed", rawInput=given)) is None


def test_a_tool_whose_word_is_called_a_command_runs_after_a_yes_to_it(tmp_path: Path) -> None:
    call: Record = {"title": "deploy", "kind": "other", "rawInput": {"command": "prod"}}

    assert ending(tmp_path, YES, asks(**call), told(status="completed")) is None
    assert ending(tmp_path, YES, told("tool_call", **call, status="completed")) == went_past("prod")
