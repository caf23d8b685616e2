"""Codex's app-server, as recorded, and as a program that misbehaves may write it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from bullpen.agents import agent_spec, process_tree, run_turn
from bullpen.agents.codex_driver import MOST_ITEMS, CodexDriver
from bullpen.agents.dialogue import MOST_OPEN
from bullpen.agents.driver import Opening, stopped_by_a_person
from bullpen.agents.gate import went_past
from bullpen.agents.registry import spec_for
from bullpen.agents.spec import AgentSpec
from bullpen.approvals import Answer
from bullpen.context import AssemblerInput
from bullpen.errors import AgentTimedOut
from bullpen.memory import SessionUse
from bullpen.team.answer_scopes import may_hold_longer
from bullpen.team.approval_rules import allowing
from bullpen.turn_events import (
    LEAVES_SANDBOX,
    ApprovalAsked,
    ApprovalOver,
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    TodoItem,
    TodoList,
    ToolFinished,
    ToolStarted,
    Usage,
)

RECORDINGS = Path(__file__).parent / "recordings" / "asking" / "codex"
FOLDER = "/home/dev/project"
OPENING = Opening(prompt="one", folder=FOLDER, permissions="ask")
YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="write to notes/ instead")
STOP = Answer(verdict="stop", reason="enough")
THREAD, TURN = "thread-1", "turn-1"
THREAD_REPLY = {
    "thread": {"id": THREAD, "cliVersion": "0.166.0"},
    "model": "gpt-5.5",
    "approvalPolicy": "untrusted",
    "approvalsReviewer": "user",
    "sandbox": {"type": "readOnly"},
}


def taken(driver: CodexDriver) -> list[Any]:
    sent, driver.outgoing[:] = [json.loads(encode(record)) for record in driver.outgoing], []
    return sent


def lines_of(case: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDINGS / f"{case}.jsonl").read_text(encoding="utf-8").splitlines()]


def played(case: str, *answers: Answer, words: str = "") -> list[Event]:
    """Return the events of a recorded turn. All that is sent after its beginning must be what was sent then."""
    driver, events, left = CodexDriver(OPENING), list[Event](), list(answers)
    sent = taken(driver)[1:]
    for line in lines_of(case)[1:]:
        if line["from"] == "client":
            if line["msg"].get("method") == "turn/steer" and words:
                assert driver.tell(words)
                sent += taken(driver)
            assert sent.pop(0) == line["msg"]
            continue
        events += (new := list(driver.parse(line["msg"])))
        for asked in (event for event in new if isinstance(event, ApprovalAsked)):
            if left:
                driver.answer(asked.id, left.pop(0))
            else:
                driver.interrupt()
        sent += taken(driver)
    assert (sent, left) == ([], [])
    return events


def of(kind: type[Any], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_a_yes() -> None:
    events = played("yes", YES)

    kinds = [Started, ToolStarted, ApprovalAsked, ToolFinished, Usage, TextDelta, Usage, Usage, Finished]
    assert [type(event) for event in events] == kinds
    started, tool, asked, finished, so_far, _, _, usage, ended = events
    assert isinstance(started, Started)
    assert (started.model, started.cli_version) == ("gpt-5.5", "0.166.0")
    command = "/bin/bash -lc 'touch a.txt'"
    assert asked == ApprovalAsked(id="0", kind="command", tool="shell", command=command, folder=FOLDER)
    assert isinstance(tool, ToolStarted)
    assert (tool.name, tool.input) == ("shell", {"command": command})
    assert finished == ToolFinished(id=tool.id)
    assert so_far == Usage(input_tokens=111, output_tokens=22, cached_tokens=11, context_window=258_400)
    assert usage == Usage(input_tokens=222, output_tokens=44, cached_tokens=22, context_window=258_400)
    assert ended == Finished("done")


def test_a_no_goes_after_its_reason() -> None:
    events = played("no", NO)

    assert [finished.failed for finished in of(ToolFinished, events)] == [True]
    assert events[-1] == Finished("I see.")


def test_a_no_to_stop() -> None:
    *_, failed = played("stop", STOP)

    assert failed == Failed(
        kind="permission_refused", message="A person stopped the turn: enough", hint="Say what to do instead."
    )


def test_what_is_free() -> None:
    events = played("free")

    assert not of(ApprovalAsked, events)
    assert [finished.output for finished in of(ToolFinished, events)] == ["alpha\n", ""]
    assert of(ToolFinished, events)[1].changed_files == (f"{FOLDER}/p.txt",)
    assert of(ToolStarted, events)[1].input == {"changes": [{"path": f"{FOLDER}/p.txt", "kind": "add"}]}


def test_edits_outside() -> None:
    events = played("edit", YES, Answer(verdict="no"))

    added, moved = of(ApprovalAsked, events)
    assert (added.kind, added.tool, added.folder) == ("edit", "file_change", FOLDER)
    assert (added.paths, added.diff) == (("/home/dev/outside.txt",), "--- /dev/null\n+++ /home/dev/outside.txt\n+hello")
    assert moved.paths == (f"{FOLDER}/notes.txt", "/home/dev/moved.txt")
    assert moved.diff.startswith(f"--- {FOLDER}/notes.txt\n+++ /home/dev/moved.txt\n@@ -1 +1 @@\n-alpha\n+beta\n")
    assert [finished.changed_files for finished in of(ToolFinished, events)] == [("/home/dev/outside.txt",), ()]


def test_an_interrupt_cancels_what_it_asks() -> None:
    assert len(of(ApprovalAsked, played("interrupted"))) == 1


def test_words_break_an_answer_off() -> None:
    events = played("told", words="What is next?")

    assert "".join(event.text for event in of(TextDelta, events)) == "one \n\nAnd five."
    assert events[-1] == Finished("And five.")


def test_a_retry_and_a_failure() -> None:
    events = played("retry")

    (retry,) = of(Notice, events)
    assert retry.kind == "retry"
    assert "Reconnecting... 1/1 (stream disconnected" in retry.text
    assert events[-1] == Finished("recovered")
    *_, failed = played("failed")
    assert isinstance(failed, Failed)
    assert failed.message == "exceeded retry limit, last status: 429 Too Many Requests"


def test_thinking() -> None:
    events = played("thinking")

    assert of(Thinking, events) == [Thinking("hmm")]
    assert events[-1] == Finished("answer")


def test_questions_with_choices_have_one_answer() -> None:
    events = played("questions", Answer(verdict="yes", text="blue"), Answer(verdict="no", reason="you choose"))

    assert [(one.id, one.kind, one.why, one.choices) for one in of(ApprovalAsked, events)] == [
        ("0.0", "question", "Which colour?", ("red", "blue")),
        ("0.1", "question", "Which shade?", ("red", "blue")),
    ]


def test_tools_of_mcp_servers() -> None:
    events = played("mcp", YES, Answer(verdict="no"))

    first, _ = of(ApprovalAsked, events)
    assert (first.kind, first.tool, first.details) == ("tool", "t.write_it", {"x": "1"})
    assert [finished.failed for finished in of(ToolFinished, events)] == [False, True]


# A turn that is written by hand.


def begun(opening: Opening = OPENING) -> CodexDriver:
    """Return the driver of a turn that is running."""
    driver = CodexDriver(opening)
    for number, result in ((1, {}), (2, THREAD_REPLY), (3, {"turn": {"id": TURN}})):
        list(driver.parse({"id": number, "result": result}))
    driver.outgoing.clear()
    return driver


def notified(driver: CodexDriver, method: str, **params: Any) -> list[Event]:
    return list(driver.parse({"method": method, "params": {"threadId": THREAD, "turnId": TURN, **params}}))


def asked(driver: CodexDriver, request: int | str, method: str, **params: Any) -> list[Event]:
    given = {"threadId": THREAD, "turnId": TURN, "itemId": "i", "cwd": FOLDER, **params}
    return list(driver.parse({"method": method, "id": request, "params": given}))


def asked_for(driver: CodexDriver, command: str, request: int | str = 0, **params: Any) -> list[Event]:
    return asked(driver, request, "item/commandExecution/requestApproval", command=command, **params)


def ended(driver: CodexDriver, status: str = "completed", **turn: Any) -> list[Event]:
    return notified(driver, "turn/completed", turn={"id": TURN, "status": status, **turn})


def test_an_answer_after_a_stop_is_not_a_reply() -> None:
    driver = begun()
    asked_for(driver, "touch a.txt")

    driver.answer("0", STOP)

    assert ended(driver)[-1] == stopped_by_a_person("enough")


@pytest.mark.parametrize(
    ("use", "method"),
    [
        (None, "thread/start"),
        (SessionUse(origin="new"), "thread/start"),
        (SessionUse(origin="rebuilt", reason="x"), "thread/start"),
        (SessionUse(origin="resumed", id="s"), "thread/resume"),
        (SessionUse(origin="forked", id="s"), "thread/fork"),
    ],
)
def test_the_thread_asks_and_its_folder_is_not_trusted(use: SessionUse | None, method: str) -> None:
    driver = CodexDriver(replace(OPENING, model="gpt-5.4", session=use))
    taken(driver)

    list(driver.parse({"id": 1, "result": {}}))

    initialized, thread = taken(driver)
    assert initialized == {"method": "initialized"}
    expected = {"cwd": FOLDER, "sandbox": "read-only", "approvalPolicy": "untrusted", "approvalsReviewer": "user"}
    known = {"threadId": "s"} if use and use.is_continued else {}
    assert thread == {"id": 2, "method": method, "params": {**expected, "model": "gpt-5.4", **known}}


@pytest.mark.parametrize(
    "other",
    [
        {"approvalPolicy": "never"},
        {"approvalPolicy": {"granular": {}}},
        {"approvalsReviewer": "auto_review"},
        {"sandbox": {"type": "dangerFullAccess"}},
        {"sandbox": None},
    ],
)
def test_a_thread_that_would_not_ask_gets_no_prompt(other: dict[str, Any]) -> None:
    driver = CodexDriver(OPENING)
    list(driver.parse({"id": 1, "result": {}}))
    taken(driver)

    _, failed = driver.parse({"id": 2, "result": {**THREAD_REPLY, **other}})

    assert isinstance(failed, Failed)
    assert failed.kind == "permission_refused"
    assert taken(driver) == []


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_refused_beginning_is_a_failure(step: int) -> None:
    driver = CodexDriver(OPENING)
    for number, result in ((1, {}), (2, THREAD_REPLY))[: step - 1]:
        list(driver.parse({"id": number, "result": result}))

    (failed,) = driver.parse({"id": step, "error": {"code": -32600, "message": "no rollout found for thread id s"}})

    assert failed == Failed(kind="crashed", message="no rollout found for thread id s")


def test_replies_that_come_twice_begin_nothing_twice() -> None:
    driver = begun()

    for number, result in ((1, {}), (2, THREAD_REPLY), (3, {"turn": {"id": "other"}}), (4, {}), (99, {})):
        assert list(driver.parse({"id": number, "result": result})) == []

    assert taken(driver) == []
    assert ended(driver)[-1] == Finished("")


def test_the_same_request_twice_is_one_question() -> None:
    driver = begun()

    assert len(asked_for(driver, "touch a")) == 1
    assert asked_for(driver, "rm -rf /") == []
    driver.answer("0", YES)
    driver.answer("0", YES)
    driver.answer("7", YES)

    assert taken(driver) == [{"id": 0, "result": {"decision": "accept"}}]
    assert len(asked_for(driver, "touch a")) == 1, "it is asked again after the answer"


def test_a_request_that_is_taken_back_is_over() -> None:
    driver = begun()
    asked_for(driver, "touch a", "r")

    assert notified(driver, "serverRequest/resolved", requestId="r") == [ApprovalOver(id="r", is_answered=False)]
    assert notified(driver, "serverRequest/resolved", requestId="r") == []
    driver.answer("r", YES)
    assert taken(driver) == []


def test_an_answer_waits_until_words_before_it_are_taken() -> None:
    driver = begun()
    asked_for(driver, "touch a")
    assert driver.tell("British spelling, please.")
    driver.answer("0", NO)

    first, second = taken(driver)
    assert [one["params"]["input"][0]["text"] for one in (first, second)] == [
        "British spelling, please.",
        "That was refused: write to notes/ instead",
    ]
    assert first["params"]["expectedTurnId"] == TURN
    assert list(driver.parse({"id": first["id"], "result": {"turnId": TURN}})) == []
    assert taken(driver) == []
    assert list(driver.parse({"id": second["id"], "result": {"turnId": TURN}})) == []
    assert taken(driver) == [{"id": 0, "result": {"decision": "decline"}}]


def test_words_that_are_refused_are_not_lost_silently() -> None:
    driver = begun()
    asked_for(driver, "touch a")
    driver.tell("Hello?")
    driver.answer("0", YES)
    (steer,) = taken(driver)

    (notice,) = driver.parse({"id": steer["id"], "error": {"code": -32600, "message": "no active turn to steer"}})

    assert notice == Notice(kind="warning", text="It did not get this in this turn: Hello?")
    assert taken(driver) == [{"id": 0, "result": {"decision": "accept"}}]


def test_words_that_are_still_on_their_way_at_the_end_are_not_lost_silently() -> None:
    driver = begun()
    driver.tell("Hello?")

    assert [type(event) for event in ended(driver)] == [Notice, Usage, Finished]
    assert not driver.tell("Hello?")
    assert not CodexDriver(OPENING).tell("too early")


def test_an_interrupt_lets_no_answer_wait() -> None:
    driver = begun()
    asked_for(driver, "touch a", 0)
    asked_for(driver, "touch b", 1)
    driver.answer("0", NO)
    taken(driver)

    driver.interrupt()

    assert [one.get("result") or one["method"] for one in taken(driver)] == [
        {"decision": "decline"},
        {"decision": "cancel"},
        "turn/interrupt",
    ]


def test_stopping_a_form_answers_it_once() -> None:
    driver = begun()
    questions = [{"id": "a", "question": "A?"}, {"id": "b", "question": "B?", "options": ["x", {"label": "y"}]}]

    first, second = asked(driver, 5, "item/tool/requestUserInput", questions=questions)
    assert isinstance(second, ApprovalAsked)
    assert second.choices == ("y",)
    assert isinstance(first, ApprovalAsked)
    driver.answer(first.id, STOP)
    driver.answer(second.id, YES)

    reply, interrupt = taken(driver)
    assert reply == {"id": 5, "result": {"answers": {"a": {"answers": ["enough"]}}}}
    assert interrupt["method"] == "turn/interrupt"


@pytest.mark.parametrize(
    ("method", "params", "reply"),
    [
        ("item/permissions/requestApproval", {}, {"result": {"permissions": {}, "scope": "turn"}}),
        ("mcpServer/elicitation/request", {"mode": "url"}, {"result": {"action": "decline", "content": None}}),
        (
            "mcpServer/elicitation/request",
            {"mode": "form", "serverName": "t", "requestedSchema": {"properties": {"name": {"type": "string"}}}},
            {"result": {"action": "decline", "content": None}},
        ),
        ("item/tool/requestUserInput", {"questions": []}, {"error": {}}),
        ("item/tool/requestUserInput", {"questions": ["?"]}, {"error": {}}),
        ("account/chatgptAuthTokens/refresh", {}, {"error": {}}),
        ("execCommandApproval", {"command": ["ls"]}, {"error": {}}),
        ("something/new", {}, {"error": {}}),
    ],
)
def test_what_no_person_can_answer_is_refused_and_does_not_hang(
    method: str, params: dict[str, Any], reply: dict[str, Any]
) -> None:
    driver = begun()

    (notice,) = asked(driver, 7, method, **params)

    assert isinstance(notice, Notice)
    (sent,) = taken(driver)
    sent["error"] = {} if "error" in sent else None
    assert sent == {"id": 7, "error": None, **reply}


@pytest.mark.parametrize("params", [None, [], "x", {}])
def test_a_request_without_parameters_is_asked_or_refused(params: Any) -> None:
    for method in ("item/commandExecution/requestApproval", "item/fileChange/requestApproval", "other"):
        driver = begun()
        (event,) = driver.parse({"method": method, "id": 0, "params": params})
        assert isinstance(event, ApprovalAsked) or taken(driver)


CHANGES = {"type": "fileChange", "id": "i", "changes": [{"path": f"{FOLDER}/a", "kind": {"type": "add"}, "diff": "x"}]}


@pytest.mark.parametrize(
    ("changes", "params"),
    [
        ([], {}),
        (None, {}),
        ([{"path": "/etc/passwd", "kind": {"type": "update"}}], {}),
        ([{"path": f"{FOLDER}/../x", "kind": {"type": "add"}}], {}),
        ([{"path": "a", "kind": {"type": "add"}}], {}),
        ([{"path": f"{FOLDER}/.git/config", "kind": {"type": "add"}}], {}),
        ([{"path": f"{FOLDER}/sub/.GIT/config", "kind": {"type": "add"}}], {}),
        ([{"path": f"{FOLDER}/.codex/config.toml", "kind": {"type": "add"}}], {}),
        ([{"path": f"{FOLDER}/a", "kind": {"type": "update", "move_path": "/home/dev/b"}}], {}),
        ([*CHANGES["changes"], {"path": "/b", "kind": {"type": "delete"}, "diff": "x"}], {}),
        (CHANGES["changes"], {"reason": "the sandbox refused it"}),
        (CHANGES["changes"], {"grantRoot": "/home/dev"}),
        (CHANGES["changes"], {"itemId": "other"}),
    ],
)
def test_an_edit_is_asked_for_that_may_be_more_than_one_in_the_folder(changes: Any, params: dict[str, Any]) -> None:
    driver = begun()
    notified(driver, "item/started", item={**CHANGES, "changes": changes})

    (question,) = asked(driver, 0, "item/fileChange/requestApproval", **params)

    assert isinstance(question, ApprovalAsked)
    assert question.kind == "edit"
    assert taken(driver) == []


def test_an_edit_in_the_folder_is_free_until_its_item_is_complete() -> None:
    driver = begun()
    notified(driver, "item/started", item=CHANGES)
    assert asked(driver, 0, "item/fileChange/requestApproval", reason=None, grantRoot=None) == []
    assert taken(driver) == [{"id": 0, "result": {"decision": "accept"}}]

    notified(driver, "item/completed", item={**CHANGES, "status": "completed"})

    assert len(asked(driver, 1, "item/fileChange/requestApproval")) == 1


@pytest.mark.parametrize(
    "params",
    [
        {"reason": "I need it."},
        {"kind": "writeStdin"},
        {"networkApprovalContext": {"host": "example.org", "protocol": "https"}},
        {"cwd": "/home/dev"},
        {"command": None},
        {"command": "/bin/bash -lc 'cat a; touch b'"},
    ],
)
def test_reading_is_asked_for_that_may_be_more(params: dict[str, Any]) -> None:
    command = {"command": "/bin/bash -lc 'cat a'", **params}
    driver = begun()

    (question,) = asked(driver, 0, "item/commandExecution/requestApproval", **command)

    assert isinstance(question, ApprovalAsked)
    assert question.kind == ("network" if "networkApprovalContext" in params else "command")
    assert taken(driver) == []
    assert asked_for(begun(), "/bin/bash -lc 'cat a'") == []


def test_helpers_of_the_agent_ask_and_say_nothing() -> None:
    driver = begun()
    other = {"threadId": "thread-2", "turnId": "turn-2"}
    assert notified(driver, "item/agentMessage/delta", **other, itemId="m", delta="secret") == []
    assert notified(driver, "turn/completed", **other, turn={"id": "turn-2", "status": "completed"}) == []
    assert notified(driver, "turn/completed", turn={"id": "turn-0", "status": "completed"}) == []
    notified(driver, "item/started", **other, item={**CHANGES, "changes": [{"path": "/b", "kind": {"type": "delete"}}]})

    (question,) = asked(driver, 0, "item/fileChange/requestApproval", **other)
    driver.answer("0", NO)

    assert isinstance(question, ApprovalAsked)
    assert question.paths == ("/b",)
    (steer,) = taken(driver)
    assert (steer["params"]["threadId"], steer["params"]["expectedTurnId"]) == ("thread-2", "turn-2")


def test_the_end_of_a_turn_that_ends_before_the_reply_to_its_beginning() -> None:
    driver = CodexDriver(OPENING)
    for number, result in ((1, {}), (2, THREAD_REPLY)):
        list(driver.parse({"id": number, "result": result}))
    notified(driver, "turn/started", turn={"id": TURN})

    (failed,) = ended(driver, "failed", error={"message": "no"})

    assert failed == Failed(kind="crashed", message="no")
    assert list(driver.parse({"id": 3, "result": {"turn": {"id": TURN}}})) == []
    assert not driver.tell("too late")


@pytest.mark.parametrize("turn", [{"status": "interrupted"}, {"status": "failed"}, {"status": "new"}])
def test_an_end_without_a_reason_is_a_failure(turn: dict[str, Any]) -> None:
    (failed,) = ended(begun(), **turn)

    assert isinstance(failed, Failed)
    assert failed.kind == "crashed"


def test_plans_warnings_words_to_commands_and_what_is_new() -> None:
    driver = begun()
    plan = [{"step": "one", "status": "completed"}, {"step": "two", "status": "inProgress"}]

    assert notified(driver, "turn/plan/updated", plan=plan) == [
        TodoList((TodoItem("one", True), TodoItem("two", False)))
    ]
    assert notified(driver, "warning", message="careful") == [Notice(kind="warning", text="careful")]
    written = "item/commandExecution/terminalInteraction"
    assert notified(driver, written, stdin="") == []
    assert of(Notice, notified(driver, written, stdin="rm x"))[0].text == "It wrote to a command that is running: rm x"
    assert of(Notice, notified(driver, "something/new"))[0].kind == "unknown"
    assert of(Notice, list(driver.parse({"result": 1})))[0].kind == "unknown"
    assert notified(driver, "thread/status/changed", status={}) == []


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"type": "commandExecution", "id": "i", "command": "touch a", "status": "completed"}, "touch a"),
        ({"type": "commandExecution", "id": "i", "command": "touch a", "status": "failed"}, "touch a"),
        ({"type": "commandExecution", "id": "i", "command": "/bin/bash -lc 'cat a'", "status": "completed"}, ""),
        ({"type": "commandExecution", "id": "i", "command": "touch a", "status": "declined"}, ""),
        ({**CHANGES, "status": "completed"}, ""),
        ({**CHANGES, "changes": [{"path": "/b", "kind": {"type": "add"}, "diff": "x"}], "status": "completed"}, "/b"),
        ({**CHANGES, "changes": [{"path": "/b", "kind": {"type": "add"}, "diff": "x"}], "status": "declined"}, ""),
    ],
)
@pytest.mark.parametrize("is_asked", [True, False])
def test_what_it_does_without_a_question_ends_its_turn(item: Any, what: str, is_asked: bool) -> None:
    driver = begun()
    notified(driver, "item/started", item=item)
    if is_asked:
        kind = "fileChange" if item["type"] == "fileChange" else "commandExecution"
        asked(driver, 0, f"item/{kind}/requestApproval", itemId="i", command=item.get("command"))
        driver.answer("0", YES)
    taken(driver)

    notified(driver, "item/completed", item=item)

    past = went_past(what) if what and not is_asked else None
    assert [sent["method"] for sent in taken(driver)] == (["turn/interrupt"] if past else [])
    assert ended(driver, "interrupted" if past else "completed")[-1] == (past or Finished(""))


@pytest.mark.parametrize("more", [{"reason": "I need the network."}, {"additionalPermissions": {"network": True}}])
def test_no_rule_lets_a_command_leave_its_sandbox(more: dict[str, Any]) -> None:
    [plain] = asked(begun(), 0, "item/commandExecution/requestApproval", itemId="i", command="touch a", cwd="/x")
    [wider] = asked(
        begun(), 0, "item/commandExecution/requestApproval", itemId="i", command="touch a", cwd="/x", **more
    )

    assert isinstance(plain, ApprovalAsked)
    assert isinstance(wider, ApprovalAsked)
    assert (allowing(["touch"], plain), allowing(["touch"], wider)) == ("touch", "")
    assert LEAVES_SANDBOX in wider.details
    assert not may_hold_longer(wider)


@pytest.mark.parametrize("answer", [None, Answer(verdict="no")])
@pytest.mark.parametrize("kind", ["commandExecution", "fileChange"])
def test_what_it_does_without_a_yes_ends_its_turn(kind: str, answer: Answer | None) -> None:
    driver = begun()
    command = {"type": "commandExecution", "id": "i", "command": "touch a", "status": "completed"}
    item = command if kind == "commandExecution" else {**CHANGES, "id": "i", "status": "completed"}
    notified(driver, "item/started", item=item)
    asked(driver, 0, f"item/{kind}/requestApproval", itemId="i", command="touch a", reason="it leaves its sandbox")
    if answer is not None:
        driver.answer("0", answer)

    notified(driver, "item/completed", item=item)

    [ending] = [event for event in ended(driver, "interrupted") if isinstance(event, Failed)]
    assert ending.kind == "permission_refused"


def test_a_command_that_has_not_ended_with_the_turn_counts_too() -> None:
    driver = begun()
    notified(driver, "item/started", item={"type": "commandExecution", "id": "i", "command": "touch a"})

    assert ended(driver)[-1] == went_past("touch a")


def test_an_answer_before_words_that_came_after_it_is_kept() -> None:
    driver = begun()
    for number in (1, 2):
        message = {"type": "agentMessage", "id": f"m{number}", "text": f"answer {number}"}
        notified(driver, "item/started", item={"type": "userMessage", "id": f"u{number}"})
        notified(driver, "item/started", item={**message, "text": ""})
        notified(driver, "item/completed", item=message)

    assert ended(driver)[-1] == Finished("answer 1\n\nanswer 2")


def test_items_without_an_end_need_no_memory_without_an_end() -> None:
    driver = begun()
    for number in range(2 * MOST_ITEMS):
        notified(driver, "item/started", item={**CHANGES, "id": f"i{number}"})

    assert asked(driver, 0, "item/fileChange/requestApproval", itemId=f"i{MOST_ITEMS}") == []
    assert len(asked(driver, 1, "item/fileChange/requestApproval", itemId="i0")) == 1


# A program that speaks the protocol, and what else its script says.

PROGRAM = """
import json, sys, time
script = json.loads(sys.argv[-1])
def say(**record):
    print(json.dumps(record), flush=True)
def hear(wanted):
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        record = json.loads(line)
        open("heard", "a").write(line)
        if wanted(record):
            return record
REPLIES = json.loads(sys.argv[-2])
for method in ("initialize", "thread/start", "turn/start"):
    request = hear(lambda record: record.get("method") == method)
    say(id=request["id"], result=REPLIES[method])
for step, *given in script:
    if step == "say":
        say(**given[0])
    elif step == "hear":
        hear(lambda record: record.get("id") == given[0] and "result" in record)
    elif step == "stay":
        time.sleep(600)
hear(lambda record: False)
"""
REPLIES = {"initialize": {}, "thread/start": THREAD_REPLY, "turn/start": {"turn": {"id": TURN}}}
END = {"method": "turn/completed", "params": {"threadId": THREAD, "turn": {"id": TURN, "status": "completed"}}}


def question(number: int) -> dict[str, Any]:
    params = {"threadId": THREAD, "turnId": TURN, "itemId": "i", "command": "touch a", "cwd": "/"}
    return {"method": "item/commandExecution/requestApproval", "id": number, "params": params}


class Scripted:
    """A turn of that program."""

    def __init__(self, folder: Path, *steps: list[Any]) -> None:
        spec = agent_spec("codex")
        assert spec.asking is not None
        program = (sys.executable, "-c", PROGRAM)
        asking = replace(spec.asking, command=program, last_arguments=(json.dumps(REPLIES), json.dumps(steps)))
        self.spec: AgentSpec = replace(spec, asking=asking)
        self.folder = folder
        self.events: list[Event] = []

    async def run(self, answer: Answer | None, **options: Any) -> str:
        async def ask(_: ApprovalAsked) -> Answer:
            if answer is None:
                await asyncio.Event().wait()
            return answer or YES

        given = self.spec.assembler().assemble(AssemblerInput(current_message="hello", system_instruction=""))
        reply = await run_turn(
            self.spec, given, emit=self.events.append, cwd=self.folder, permissions="ask", ask=ask, **options
        )
        return reply.text

    def replies(self) -> list[Any]:
        heard = [json.loads(line) for line in (self.folder / "heard").read_text().splitlines()]
        return [(record["id"], record["result"]) for record in heard if "result" in record]


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_program_that_asks_twice_and_after_its_end(tmp_path: Path) -> None:
    asks = ["say", question(0)]
    turn = Scripted(tmp_path, asks, asks, ["hear", 0], asks, ["hear", 0], ["say", END], ["say", question(1)])

    asyncio.run(turn.run(YES))

    # Its second question is the same as the first, or, if it comes after the answer to that, another one.
    ids = [one.id for one in of(ApprovalAsked, turn.events)]
    assert ids in (["0", "0.2"], ["0", "0.2", "0.3"])
    # The answer to the third may come after its end.
    assert turn.replies() in [[(0, {"decision": "accept"})] * heard for heard in (2, len(ids))]


def test_a_program_that_floods_questions(tmp_path: Path) -> None:
    count = MOST_OPEN + 50
    turn = Scripted(tmp_path, *(["say", question(number)] for number in range(count)), ["say", END])

    asyncio.run(turn.run(None))

    assert len(of(ApprovalAsked, turn.events)) == MOST_OPEN
    assert [over.is_answered for over in of(ApprovalOver, turn.events)] == [False] * MOST_OPEN


def test_a_program_that_goes_on_after_an_answer_for_ever(tmp_path: Path) -> None:
    turn = Scripted(tmp_path, ["say", question(0)], ["hear", 0], ["stay"])

    with pytest.raises(AgentTimedOut):
        asyncio.run(turn.run(YES, idle_timeout=1))

    assert not process_tree.running


def test_a_member_with_another_program_runs_that_one_also_when_it_asks() -> None:
    spec = spec_for("codex", ["/opt/codex"])

    assert spec.with_permissions("ask").command[:2] == ("/opt/codex", "app-server")
    assert spec.with_permissions("edit").command[:2] == ("/opt/codex", "exec")
    assert spec.arguments("ask", "gpt-5.5") == [
        *("app-server", "-c", 'shell_environment_policy.inherit="core"', "-c", "project_doc_max_bytes=0")
    ]
