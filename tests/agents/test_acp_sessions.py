"""A session is loaded in the Agent Client Protocol: its history is not told again, its mode is set, or it is lost."""

import json
from typing import Any

import pytest

from bullpen.agents.driver import Driver, Opening
from bullpen.agents.registry import agent_spec
from bullpen.context.report import PromptReport
from bullpen.conversation.recorded_events import recorded_events
from bullpen.memory import SessionUse
from bullpen.store.base import TurnRecord
from bullpen.turn_events import Event, Failed, Started, TextDelta

MODES = {"currentModeId": "auto", "availableModes": [{"id": "auto"}, {"id": "default"}]}
HELLO = {"id": 1, "result": {"protocolVersion": 1}}


def loading() -> Driver:
    spec = agent_spec("qwen").with_permissions("ask")
    assert spec.driver is not None
    use = SessionUse(origin="resumed", id="s1")
    return spec.driver(Opening(prompt="hello", folder="/x", permissions="ask", session=use))


def heard(driver: Driver, *messages: dict[str, Any]) -> list[Event]:
    return [event for message in messages for event in driver.parse({"jsonrpc": "2.0", **message})]


def chunk(text: str) -> dict[str, Any]:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return {"method": "session/update", "params": {"sessionId": "s1", "update": update}}


def methods(driver: Driver) -> list[str]:
    return [message["method"] for message in driver.outgoing]


def test_what_was_said_before_is_not_said_again_and_the_mode_is_set_again() -> None:
    driver = loading()

    events = heard(driver, HELLO, chunk("old"), {"id": 2, "result": {"modes": MODES}}, {"id": 3, "result": {}})
    events += heard(driver, chunk("new"))

    assert events == [Started(session_id="s1"), TextDelta("new")]
    assert methods(driver) == ["initialize", "session/load", "session/set_mode", "session/prompt"]
    assert driver.outgoing[2]["params"] == {"sessionId": "s1", "modeId": "default"}


def test_one_that_cannot_be_loaded_is_lost_so_that_a_new_one_can_begin() -> None:
    driver = loading()

    (failure,) = heard(driver, HELLO, {"id": 2, "error": {"code": -32002, "message": "Resource not found: session:s1"}})

    assert failure == Failed(kind="session_lost", message="Resource not found: session:s1")
    assert methods(driver) == ["initialize", "session/load"]


@pytest.mark.parametrize(("code", "kind"), [(-32000, "not_signed_in"), (-32603, "session_lost")])
def test_who_is_not_signed_in_has_lost_nothing(code: int, kind: str) -> None:
    (failure,) = heard(loading(), HELLO, {"id": 2, "error": {"code": code, "message": "no"}})

    assert isinstance(failure, Failed)
    assert failure.kind == kind


def test_an_error_after_that_is_not_about_the_session() -> None:
    driver = loading()

    *_, failure = heard(
        driver,
        HELLO,
        {"id": 2, "result": {"modes": MODES}},
        {"id": 3, "result": {}},
        {"id": 4, "error": {"code": -32603, "message": "overloaded"}},
    )

    assert failure == Failed(kind="crashed", message="overloaded")


def test_such_a_turn_is_read_again_from_what_its_program_wrote() -> None:
    messages = [HELLO, chunk("old"), {"id": 2, "result": {"modes": MODES}}, {"id": 3, "result": {}}, chunk("new")]
    stream = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
    use = SessionUse(origin="resumed", id="s1")
    record = TurnRecord(
        prompt="hello",
        system=None,
        report=PromptReport(agent_type="qwen-code", max_bytes=1, section_bytes={}, session=use),
        command=("qwen", "--acp"),
        stream=stream,
        stream_is_cut=False,
    )

    assert TextDelta("new") in recorded_events(record)
    assert TextDelta("old") not in recorded_events(record)
