"""What is sent to Claude Code is what Anthropic's own SDK would send: its drift would be seen here."""

import asyncio
import json
from typing import Any

import pytest
from tests.agents.test_claude_driver import ANSWERS, OPENING, lines_of, played

from bullpen.agents.claude import ClaudeParser
from bullpen.agents.claude_driver import ClaudeDriver
from bullpen.approvals import Answer

NOT_INSTALLED = "ANTHROPIC'S SDK IS NOT INSTALLED: run `pip install claude-agent-sdk`; only this test needs it"
sdk: Any = pytest.importorskip("claude_agent_sdk", reason=NOT_INSTALLED)
query: Any = pytest.importorskip("claude_agent_sdk._internal.query", reason=NOT_INSTALLED)


class Written:
    """A transport that keeps what the SDK writes."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    async def write(self, line: str) -> None:
        self.messages.append(json.loads(line))


def sdk_answers(request: dict[str, Any], result: object) -> dict[str, Any]:
    """Return the SDK's message if its user decides so."""
    transport = Written()

    async def can_use_tool(*_: object) -> object:
        return result

    async def handled() -> None:
        asking = query.Query(transport=transport, is_streaming_mode=True, can_use_tool=can_use_tool)
        await asking._handle_control_request(request)
        # It opens streams that it closes only with itself.
        asking._message_send.close()
        asking._message_receive.close()

    asyncio.run(handled())
    (message,) = transport.messages
    return message


def decided(case: str, answers: tuple[Answer, ...], given: dict[str, Any]) -> object:
    answer = answers[0]
    if answer.verdict != "yes":
        return sdk.PermissionResultDeny(message=answer.reason, interrupt=answer.verdict == "stop")
    if case == "questions":
        texts = [one.text for one in answers]
        named = {one["question"]: text for one, text in zip(given["questions"], texts, strict=True)}
        return sdk.PermissionResultAllow(updated_input={**given, "answers": named})
    return sdk.PermissionResultAllow(updated_input={**given, "command": answer.command} if answer.command else None)


@pytest.mark.parametrize("case", [case for case, answers in ANSWERS.items() if answers])
def test_answers_are_those_of_the_sdk(case: str) -> None:
    (request,) = [line["msg"] for line in lines_of(case) if line["msg"]["type"] == "control_request"]
    _, sent = played(case, *ANSWERS[case], words="Words")

    ours = [message for message in sent if message["type"] == "control_response"]
    assert ours == [sdk_answers(request, decided(case, ANSWERS[case], request["request"]["input"]))]


def test_an_error_is_that_of_the_sdk() -> None:
    request = {"type": "control_request", "request_id": "r1", "request": {"subtype": "unheard_of"}}
    driver = ClaudeDriver(OPENING, ClaudeParser())
    list(driver.parse(request))

    theirs = sdk_answers(request, None)
    ours = driver.outgoing[-1]
    assert theirs["response"].pop("error")
    assert ours["response"].pop("error")
    assert ours == theirs


def test_words_are_marked_as_the_sdk_marks_them() -> None:
    driver = ClaudeDriver(OPENING, ClaudeParser())
    driver.tell("/words")

    message = driver.outgoing[-1]
    assert message == query.stamp_user_message(message, True)
    assert driver.outgoing[0] == query.stamp_user_message(driver.outgoing[0], False)


def test_an_interrupt_is_that_of_the_sdk() -> None:
    driver = ClaudeDriver(OPENING, ClaudeParser())
    driver.interrupt()

    (subtype,) = sdk.types.SDKControlInterruptRequest.__annotations__.values()
    message = driver.outgoing[-1]
    assert set(message) == set(sdk.types.SDKControlRequest.__annotations__)
    assert message["request"]["subtype"] in subtype.__args__


@pytest.mark.parametrize("case", [case for case, answers in ANSWERS.items() if answers])
def test_a_question_has_what_the_sdk_reads_of_it(case: str) -> None:
    (request,) = [line["msg"]["request"] for line in lines_of(case) if line["msg"]["type"] == "control_request"]
    permission = sdk.types.SDKControlPermissionRequest

    assert {"subtype", "tool_name", "input", "tool_use_id"} <= set(request) & set(permission.__annotations__)
    assert {"description", "decision_reason", "blocked_path"} <= set(permission.__annotations__)
