"""Traces: real turns, sent over HTTP to a collector, and read there as OTLP."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests import forked
from tests.conversation.stage import FAIL, HANG, Stage, tell, until_at_work
from tests.telemetry.collector import Collector, values

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.routing.queue import WaitingTurn
from bullpen.team.team import Member
from bullpen.telemetry.exporter import CANNOT_SEND, Exporter
from bullpen.telemetry.settings import Settings, settings_from
from bullpen.telemetry.telemetry import CLOSE_SECONDS
from bullpen.telemetry.traces import Traces
from bullpen.telemetry.turns import TurnRecord

LONGEST_STORY_SECONDS = 100
PARTS = ["route", "queue", "prompt", "invoke_agent a", "store"]


def play(stage: Stage, story: Callable[[Conversation], Awaitable[object]]) -> None:
    async def run() -> None:
        async with stage.open() as conversation:
            await story(conversation)

    asyncio.run(asyncio.wait_for(run(), LONGEST_STORY_SECONDS))


def say_hello(stage: Stage) -> None:
    play(stage, lambda conversation: tell(conversation, "Which fruit?"))


def test_a_turn_is_a_trace_of_its_parts(stage: Stage, collector: Collector) -> None:
    say_hello(stage)

    turn, run = collector.one("turn a"), collector.one("invoke_agent a")
    assert collector.inside(turn) == PARTS
    assert collector.inside(run) == ["execute_tool Bash"]
    mine = [span for span in collector.spans if span.trace_id == turn.trace_id]
    assert len(mine) == 1 + len(PARTS) + 1
    assert not turn.parent_span_id
    for span in mine:
        assert turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= turn.end_time_unix_nano
    in_order = [next(span for span in mine if span.name == name) for name in PARTS]
    for earlier, later in pairwise(in_order):
        assert earlier.end_time_unix_nano == later.start_time_unix_nano


def test_names_follow_the_conventions(stage: Stage, collector: Collector) -> None:
    say_hello(stage)

    run = values(collector.one("invoke_agent a").attributes)
    conversation = run.pop("gen_ai.conversation.id")
    assert run.pop("gen_ai.response.model")
    assert run.pop("gen_ai.agent.version")
    assert run == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "opus",
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.usage.output_tokens": 34,
        "gen_ai.usage.cache_read.input_tokens": 1000,
        "bullpen.usage.cost_usd": 0.5,
        "bullpen.usage.is_estimate": False,
        "bullpen.agent.type": "claude-code",
        "bullpen.turn.id": "1",
        "bullpen.turn.state": "done",
    }
    tool = values(collector.one("execute_tool Bash").attributes)
    assert tool.pop("gen_ai.tool.call.id")
    assert tool == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Bash"}
    turn = values(collector.one("turn b").attributes)
    assert (turn["bullpen.asked_by"], turn["bullpen.agent.type"]) == ("a", "command")
    assert turn["gen_ai.conversation.id"] == conversation
    assert collector.resource["service.name"] == "bullpen"


def test_every_name_is_one_of_the_conventions_or_ours(stage: Stage, collector: Collector) -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv.attributes import error_attributes

    known = {
        value for one in (gen_ai_attributes, error_attributes) for value in vars(one).values() if isinstance(value, str)
    }
    stage.agent("b", FAIL)

    say_hello(stage)

    names = {attribute.key for span in collector.spans for attribute in span.attributes}
    assert {name for name in names if not name.startswith("bullpen.")} <= known


def test_a_turn_refers_to_the_one_that_handed_over(stage: Stage, collector: Collector) -> None:
    say_hello(stage)

    first, second = collector.one("turn a"), collector.one("turn b")
    assert [(link.trace_id, link.span_id) for link in second.links] == [(first.trace_id, first.span_id)]
    assert not first.links
    assert first.trace_id != second.trace_id


def test_a_failure_is_an_error_without_its_words(stage: Stage, collector: Collector) -> None:
    stage.agent("a", FAIL)
    tool = {"tool": {"name": "Bash", "input": {}, "output": "plums", "failed": True}}
    stage.agent("b", [tool, {"say": "Cherries."}], agent="claude")

    async def story(conversation: Conversation) -> None:
        await tell(conversation, "[NEXT: a]")
        await tell(conversation, "[NEXT: b]")

    play(stage, story)

    for name in ("turn a", "invoke_agent a"):
        span = collector.one(name)
        assert span.status.code == span.status.STATUS_CODE_ERROR
        assert span.status.message == ""
        assert values(span.attributes)["error.type"] == "crashed"
    used = collector.one("execute_tool Bash")
    assert (used.status.code, values(used.attributes)["error.type"]) == (used.status.STATUS_CODE_ERROR, "tool_failed")
    assert collector.one("turn b").status.code == Span().status.STATUS_CODE_UNSET
    assert "luck" not in collector.everything


def test_a_cancelled_turn_and_its_retry_are_two_traces(stage: Stage, collector: Collector) -> None:
    stage.agent("a", HANG, "Now it works.")

    async def story(conversation: Conversation) -> None:
        await conversation.say("Begin.")
        await until_at_work(conversation, "a")
        await conversation.cancel()
        await conversation.retry()
        await conversation.continue_turns()
        await conversation.until_quiet()

    play(stage, story)

    cancelled, again = sorted(collector.named("turn a"), key=lambda span: span.start_time_unix_nano)
    assert values(cancelled.attributes)["error.type"] == "cancelled"
    assert values(again.attributes)["bullpen.turn.state"] == "done"
    assert collector.inside(cancelled) == PARTS
    # Nobody said anything for it: it begins when it was asked for again.
    assert collector.inside(again) == PARTS[1:]
    assert cancelled.end_time_unix_nano <= again.start_time_unix_nano


def test_no_text_is_sent_unless_it_is_asked_for(stage: Stage, collector: Collector) -> None:
    say_hello(stage)

    for said in ("fruit", "Apricots", "Cherries", "papers", "plums"):
        assert said not in collector.everything


def test_text_that_is_asked_for_is_sent_without_keys(
    stage: Stage, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    monkeypatch.setenv("PLUM_TOKEN", "blue-plums-from-the-garden")
    tool = {
        "tool": {
            "name": "Bash",
            "input": {"command": "echo sk-1234567890abcdef"},
            "output": "It is blue-plums-from-the-garden.",
        }
    }
    stage.agent("a", [tool, {"say": "Use sk-1234567890abcdef, or blue-plums-from-the-garden."}], agent="claude")

    play(stage, lambda conversation: tell(conversation, "Is it ghp_0123456789abcdef0123?"))

    run, used = (
        values(collector.one("invoke_agent a").attributes),
        values(collector.one("execute_tool Bash").attributes),
    )
    assert run["gen_ai.input.messages"] == ('[{"role":"user","parts":[{"type":"text","content":"Is it [secret]?"}]}]')
    assert run["gen_ai.output.messages"] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"Use [secret], or [secret]."}],"finish_reason":"stop"}]'
    )
    assert used["gen_ai.tool.call.arguments"] == '{"command":"echo [secret]"}'
    assert used["gen_ai.tool.call.result"] == "It is [secret]."
    for secret in ("sk-1234567890abcdef", "blue-plums", "ghp_0"):
        assert secret not in collector.everything


def test_names_of_an_agent_are_only_names(stage: Stage, collector: Collector) -> None:
    stage.members["b"]["display_name"] = "李"
    names = ["a\nb", "工具", 'x" {', "long " * 10_000, "sk-1234567890abcdef", "half \ud800"]
    stage.agent("a", [*({"tool": {"name": name, "input": {}, "output": ""}} for name in names)], agent="claude")

    say_hello(stage)

    sent = collector.inside(collector.one("invoke_agent a"))
    assert [name.removeprefix("execute_tool ") for name in sent][:3] == ["a b", "工具", 'x" {']
    assert len(sent[3]) <= len("execute_tool ") + 100
    assert sent[4:] == ["execute_tool [secret]", "execute_tool half \ufffd"]


def test_the_standard_variables_are_obeyed(stage: Stage, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our agents")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=shop")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=plums")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")

    say_hello(stage)

    assert collector.resource["service.name"] == "our agents"
    assert collector.resource["deployment.environment.name"] == "shop"
    assert collector.headers[0]["x-key"] == "plums"
    assert collector.headers[0]["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_SDK_DISABLED", "true"), ("BULLPEN_TELEMETRY", "0")]
)
def test_nothing_is_sent_if_that_is_asked_for(
    name: str, value: str, stage: Stage, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)

    say_hello(stage)

    assert not collector.was_asked.is_set()


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(BullpenError, match=r"http/protobuf, not with 'grpc'.*4318"):
        settings_from({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    with pytest.raises(BullpenError, match=r"'zipkin'\. bullpen knows: otlp, none"):
        settings_from({"OTEL_TRACES_EXPORTER": "zipkin"})
    both = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
    assert settings_from(both) == Settings(traces=True, content=False)
    assert settings_from({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}).content
    assert not settings_from({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "no_content"}).content


def test_a_collector_that_does_not_answer_holds_nothing_up(stage: Stage, collector: Collector) -> None:
    collector.answers.clear()

    async def story(conversation: Conversation) -> None:
        await tell(conversation, "Which fruit?")
        await asyncio.to_thread(collector.was_asked.wait)
        # It has spans of the first turns, and does not answer.
        assert (await tell(conversation, "And now?"))[-1] == "b: Cherries."

    play(stage, story)

    # Closed, although it has not answered yet.
    assert not collector.answers.is_set()
    assert collector.requests == []


def test_others_continue_while_it_waits_for_a_collector_to_close(collector: Collector) -> None:
    collector.answers.clear()
    record = TurnRecord(
        conversation_id="quiet-river",
        turn=WaitingTurn(id="1", member="a", message_id="msg-1"),
        began_at=1,
        ran_at=1,
        ended_at=1,
        stored_at=1,
    )

    async def story() -> int:
        traces, steps = Traces(content=False), 0
        traces.add(record, Member(name="a", type="ai", agent="claude"), None)
        closing = asyncio.create_task(traces.close(CLOSE_SECONDS))
        while not closing.done():
            await asyncio.sleep(0)
            steps += 1
        return steps

    # A few are taken even if it lets nobody else run meanwhile.
    assert asyncio.run(story()) > 100


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_collector_that_fails_holds_nothing_up(
    status: int, stage: Stage, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = status

    async def story(conversation: Conversation) -> None:
        await tell(conversation, "Which fruit?")
        await asyncio.to_thread(collector.was_asked.wait)
        assert (await tell(conversation, "And now?"))[-1] == "b: Cherries."

    play(stage, story)

    assert [record.message for record in caplog.records if record.name.startswith("opentelemetry")] == []


def test_that_nothing_can_be_sent_is_said_once(
    collector: Collector, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not worth trying again.
    collector.status = 400
    exporter = Exporter()

    for _ in range(3):
        exporter.export([])
    collector.status = 200
    exporter.export([])
    exporter.shutdown()
    exporter.shutdown()

    assert [record.message for record in caplog.records] == [CANNOT_SEND, "Traces are sent again."]


def test_a_program_ends_although_its_collector_does_not_answer(stage: Stage, collector: Collector) -> None:
    collector.answers.clear()

    done = run_bullpen(stage)

    assert done.returncode == 0
    assert "Cherries." in done.stdout
    assert collector.was_asked.is_set()


def test_a_program_ends_although_there_is_not_a_collector(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")

    done = run_bullpen(stage)

    assert done.returncode == 0
    # What cannot be sent does not concern who talks.
    assert "Traces" not in done.stderr


def test_a_command_sends_its_turns(stage: Stage, collector: Collector) -> None:
    done = run_bullpen(stage)

    assert done.returncode == 0
    assert [span.name for span in collector.spans if span.name.startswith("turn ")] == ["turn a", "turn b"]


def run_bullpen(stage: Stage) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bullpen", "run", "--trust", str(stage.write()), "Which fruit?"]
    return forked.run(command, cwd=Path(stage.folder), capture_output=True, text=True, check=False)
