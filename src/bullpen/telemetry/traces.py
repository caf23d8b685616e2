"""Traces: each turn is one, with a span for everything it waited for and did."""

import asyncio
import threading
from contextlib import suppress

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from bullpen import __version__
from bullpen.team.team import Member
from bullpen.telemetry import words
from bullpen.telemetry.exporter import Exporter
from bullpen.telemetry.turns import ToolCall, TurnRecord

Attributes = dict[str, AttributeValue]
TOOL_FAILED = "tool_failed"


class Traces:
    """Sends spans to a collector, from a thread of its own: what cannot be sent is dropped."""

    def __init__(self, *, content: bool) -> None:
        self._content = content
        resource = Resource.create({"service.name": "bullpen", "service.version": __version__})
        # What a person has set is right; `create` would prefer ours.
        resource = resource.merge(OTELResourceDetector().detect())
        # At exit nobody would be there to wait; `close` says how long.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._exporter = Exporter()
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("bullpen", __version__)

    def add(self, record: TurnRecord, member: Member, handed_over_by: SpanContext | None) -> SpanContext:
        """Send a turn that has ended; return by what later turns can refer to it."""
        began = record.said_at or record.queued_at or record.began_at
        turn = self._tracer.start_span(
            f"turn {words.name(member.name)}",
            context=Context(),
            attributes={**_of_turn(record, member), **_of_question(record)},
            links=[Link(handed_over_by)] if handed_over_by is not None else [],
            start_time=began,
        )
        inside = trace.set_span_in_context(turn, Context())
        if record.said_at:
            self._part("route", inside, record.said_at, record.queued_at)
        if record.queued_at:
            self._part("queue", inside, record.queued_at, record.began_at)
        self._part("prompt", inside, record.began_at, record.ran_at)
        self._run(record, member, inside)
        self._part("store", inside, record.ended_at, record.stored_at)
        _set_end(turn, record)
        turn.end(record.stored_at)
        return turn.get_span_context()

    async def close(self, seconds: float) -> None:
        """Send what is left, but wait no longer than this for a collector."""
        closed, loop = asyncio.Event(), asyncio.get_running_loop()

        def close() -> None:
            self._provider.shutdown()
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(closed.set)

        # Not a thread of the loop, which would wait for it: a request cannot be interrupted.
        threading.Thread(target=close, name="bullpen-telemetry", daemon=True).start()
        try:
            await asyncio.wait_for(closed.wait(), seconds)
        except TimeoutError:
            # So that it does not try again.
            self._exporter.shutdown()

    def _part(self, name: str, inside: Context, began_at: int, ended_at: int) -> None:
        self._tracer.start_span(name, context=inside, start_time=began_at).end(max(began_at, ended_at))

    def _run(self, record: TurnRecord, member: Member, inside: Context) -> None:
        name = words.name(member.name)
        content = self._content_of(record) if self._content else {}
        attributes = {**_of_turn(record, member), **_of_run(record, member), **content}
        run = self._tracer.start_span(
            f"invoke_agent {name}", context=inside, attributes=attributes, start_time=record.ran_at
        )
        around = trace.set_span_in_context(run, inside)
        for tool in record.tools:
            self._tool(tool, around)
        _set_end(run, record)
        run.end(record.ended_at)

    def _tool(self, tool: ToolCall, around: Context) -> None:
        name = words.name(tool.name)
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": words.name(tool.id),
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = words.as_json(tool.input)
            attributes["gen_ai.tool.call.result"] = words.text(tool.output)
        span = self._tracer.start_span(
            f"execute_tool {name}", context=around, attributes=attributes, start_time=tool.began_at
        )
        if tool.failed:
            span.set_attribute("error.type", TOOL_FAILED)
            span.set_status(Status(StatusCode.ERROR))
        span.end(tool.ended_at)

    def _content_of(self, record: TurnRecord) -> Attributes:
        content: Attributes = {}
        if record.question is not None:
            content["gen_ai.input.messages"] = words.messages("user", record.question.content)
        if record.reply:
            content["gen_ai.output.messages"] = words.messages("assistant", record.reply, finish_reason="stop")
        return content


def _of_turn(record: TurnRecord, member: Member) -> Attributes:
    return {
        "gen_ai.agent.name": words.name(member.name),
        "gen_ai.conversation.id": record.conversation_id,
        "bullpen.agent.type": words.agent_type(member),
        "bullpen.turn.id": record.turn.id,
        "bullpen.turn.state": record.state,
        **({"bullpen.stand_in": words.name(record.stand_in)} if record.stand_in else {}),
    }


def _of_question(record: TurnRecord) -> Attributes:
    return {} if record.question is None else {"bullpen.asked_by": words.name(record.question.speaker.role_id)}


def _of_run(record: TurnRecord, member: Member) -> Attributes:
    known = {
        "gen_ai.provider.name": words.provider(member),
        "gen_ai.request.model": words.name(member.model or ""),
        "gen_ai.response.model": words.name(record.model),
        "gen_ai.agent.version": words.name(record.cli_version),
    }
    attributes: Attributes = {"gen_ai.operation.name": "invoke_agent", **{k: v for k, v in known.items() if v}}
    if record.usage is not None:
        attributes["gen_ai.usage.input_tokens"] = record.usage.input_tokens
        attributes["gen_ai.usage.output_tokens"] = record.usage.output_tokens
        attributes["gen_ai.usage.cache_read.input_tokens"] = record.usage.cached_tokens
        if record.usage.cost_usd is not None:
            attributes["bullpen.usage.cost_usd"] = record.usage.cost_usd
            attributes["bullpen.usage.is_estimate"] = record.usage.is_estimate
    return attributes


def _set_end(span: trace.Span, record: TurnRecord) -> None:
    """Say how it ended. The sentence about a failure may quote what was said, so only its kind is sent."""
    if record.error_type:
        span.set_attribute("error.type", record.error_type)
        span.set_status(Status(StatusCode.ERROR))
