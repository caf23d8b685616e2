"""OpenAI's Responses API, which codex uses: https://platform.openai.com/docs/api-reference/responses-streaming."""

from collections.abc import Iterator

from msgspec import Struct

from bullpen.testing.models.script import ModelRequest, Reply, ToolCall
from bullpen.testing.models.vendor import NOT_FOUND, NOT_JSON, Json, StreamEvent, VendorApi

ERROR_TYPES = {429: "rate_limit_error"}
ERROR_CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}

# codex asks for a WebSocket first; this status makes it use plain requests at once.
NO_WEBSOCKET = Reply(error=426, error_message="This endpoint speaks HTTP only.")

INCOMPLETE_REASONS = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
COMPLETE_REASONS = ("end_turn", "tool_use")


def side_answer(request: ModelRequest) -> Reply | Json | None:
    """Return the reply to a call that is not part of the conversation."""
    match request.method, request.path, request.body:
        case "POST", "/v1/responses", dict():
            return None
        case "POST", "/v1/responses", _:
            return NOT_JSON
        case "GET", "/v1/responses", _:
            return NO_WEBSOCKET
        case "GET", "/v1/models", _:
            return {"object": "list", "data": []}
        case _:
            return NOT_FOUND


def error_body(reply: Reply) -> Json:
    """Return the body of an error."""
    status = reply.error or 500
    kind = ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": reply.error_message, "type": kind, "param": None, "code": ERROR_CODES.get(status)}
    return {"error": {**error, **reply.error_fields}}


def answer(reply: Reply, model: str, reply_id: str) -> Json:
    """Return the answer in one piece."""
    reason = _incomplete_reason(reply)
    return _response(model, reply_id) | {
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [item.whole for item in _items(reply, reply_id)],
        "usage": _usage(reply),
    }


def stream(reply: Reply, model: str, reply_id: str) -> Iterator[StreamEvent]:
    """Return the answer as the events of a stream."""
    for number, event in enumerate(_events(reply, model, reply_id)):
        yield StreamEvent(event.data | {"sequence_number": number}, event.is_chunk)


def _events(reply: Reply, model: str, reply_id: str) -> Iterator[StreamEvent]:
    begun = _response(model, reply_id)
    yield StreamEvent({"type": "response.created", "response": begun})
    yield StreamEvent({"type": "response.in_progress", "response": begun})
    for index, item in enumerate(_items(reply, reply_id)):
        yield from _item_events(index, item, reply)
    ended = answer(reply, model, reply_id)
    yield StreamEvent({"type": f"response.{ended['status']}", "response": ended})


class _Part(Struct, frozen=True, kw_only=True):
    """The part of an item that contains its text."""

    whole: Json
    event: str
    index_field: str


class _Item(Struct, frozen=True, kw_only=True):
    """One part of an answer: its final form, how it starts, and what is streamed in between."""

    whole: Json
    blank: Json
    event: str
    field: str
    content: str
    part: _Part | None = None


def _items(reply: Reply, reply_id: str) -> Iterator[_Item]:
    if reply.thinking:
        yield _reasoning_item(reply.thinking, f"rs_{reply_id}")
    if reply.text:
        yield _message_item(reply.text, f"msg_{reply_id}")
    for number, call in enumerate(reply.tool_calls):
        yield _tool_item(call, f"{reply_id}_{number}")


def _reasoning_item(thinking: str, item_id: str) -> _Item:
    part = {"type": "summary_text", "text": thinking}
    return _Item(
        whole={"id": item_id, "type": "reasoning", "summary": [part], "encrypted_content": "c2NyaXB0ZWQ="},
        blank={"summary": []},
        event="response.reasoning_summary_text",
        field="text",
        content=thinking,
        part=_Part(whole=part, event="response.reasoning_summary_part", index_field="summary_index"),
    )


def _message_item(text: str, item_id: str) -> _Item:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return _Item(
        whole={"id": item_id, "type": "message", "status": "completed", "role": "assistant", "content": [part]},
        blank={"status": "in_progress", "content": []},
        event="response.output_text",
        field="text",
        content=text,
        part=_Part(whole=part, event="response.content_part", index_field="content_index"),
    )


def _tool_item(call: ToolCall, call_id: str) -> _Item:
    """Return a function call, or a call of a free-form tool if the arguments are text."""
    free_form = isinstance(call.arguments, str)
    kind, prefix, field = ("custom_tool_call", "ctc", "input") if free_form else ("function_call", "fc", "arguments")
    whole = {"id": f"{prefix}_{call_id}", "type": kind, "status": "completed", "call_id": f"call_{call_id}"}
    if call.namespace:
        whole["namespace"] = call.namespace
    return _Item(
        whole=whole | {"name": call.name, field: call.arguments_text},
        blank={"status": "in_progress", field: ""},
        event=f"response.{kind}_{field}",
        field=field,
        content=call.arguments_text,
    )


def _item_events(index: int, item: _Item, reply: Reply) -> Iterator[StreamEvent]:
    place = {"item_id": item.whole["id"], "output_index": index}
    yield StreamEvent({"type": "response.output_item.added", "output_index": index, "item": item.whole | item.blank})
    if item.part:
        place |= {item.part.index_field: 0}
        yield StreamEvent({"type": f"{item.part.event}.added", **place, "part": item.part.whole | {"text": ""}})
    for chunk in reply.chunks(item.content):
        yield StreamEvent({"type": f"{item.event}.delta", **place, "delta": chunk}, is_chunk=True)
    yield StreamEvent({"type": f"{item.event}.done", **place, item.field: item.content})
    if item.part:
        yield StreamEvent({"type": f"{item.part.event}.done", **place, "part": item.part.whole})
    yield StreamEvent({"type": "response.output_item.done", "output_index": index, "item": item.whole})


def _response(model: str, reply_id: str) -> Json:
    """Return the response before it has any content."""
    return {
        "id": f"resp_{reply_id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "usage": None,
    }


def _incomplete_reason(reply: Reply) -> str | None:
    if reply.stop_reason is None or reply.stop_reason in COMPLETE_REASONS:
        return None
    return INCOMPLETE_REASONS.get(reply.stop_reason, reply.stop_reason)


def _usage(reply: Reply) -> Json:
    return {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }


OPENAI = VendorApi(
    name="openai",
    paths=("/v1/responses", "/v1/models"),
    side_answer=side_answer,
    answer=answer,
    stream=stream,
    error_body=error_body,
)
