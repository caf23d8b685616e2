"""Anthropic's Messages API, which claude uses: https://docs.anthropic.com/en/api/messages-streaming."""

from collections.abc import Iterator

from msgspec import Struct

from bullpen.testing.models.script import ModelRequest, Reply, ToolCall
from bullpen.testing.models.vendor import NOT_FOUND, NOT_JSON, Json, StreamEvent, VendorApi, fitting_reply

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
SIGNATURE = "c2NyaXB0ZWQ="


def side_answer(request: ModelRequest) -> Reply | Json | None:
    """Return the reply to a call that is not part of the conversation."""
    match request.method, request.path, request.body:
        # claude asks for a title of the session this way. A conversation's own calls never have a schema.
        case "POST", "/v1/messages", {"output_config": {"format": {"schema": schema}}}:
            return fitting_reply(schema)
        case "POST", "/v1/messages", dict():
            return None
        case "POST", "/v1/messages/count_tokens", dict():
            return {"input_tokens": len(request.raw) // 4}
        case "POST", "/v1/messages" | "/v1/messages/count_tokens", _:
            return NOT_JSON
        case _:
            return NOT_FOUND


def error_body(reply: Reply) -> Json:
    """Return the body of an error."""
    kind = ERROR_TYPES.get(reply.error or 500, "api_error")
    return {"type": "error", "error": {"type": kind, "message": reply.error_message, **reply.error_fields}}


def answer(reply: Reply, model: str, reply_id: str) -> Json:
    """Return the answer in one piece."""
    return _message(model, reply_id) | {
        "content": [block.whole for block in _blocks(reply, reply_id)],
        "stop_reason": _stop_reason(reply),
        "usage": _usage(reply, reply.output_tokens),
    }


def stream(reply: Reply, model: str, reply_id: str) -> Iterator[StreamEvent]:
    """Return the answer as the events of a stream."""
    begun = _message(model, reply_id) | {"usage": _usage(reply, output_tokens=1)}
    yield StreamEvent({"type": "message_start", "message": begun})
    yield StreamEvent({"type": "ping"})
    for index, block in enumerate(_blocks(reply, reply_id)):
        yield from _block_events(index, block, reply)
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield StreamEvent({"type": "message_delta", "delta": delta, "usage": {"output_tokens": reply.output_tokens}})
    yield StreamEvent({"type": "message_stop"})


class _Block(Struct, frozen=True, kw_only=True):
    """One part of an answer: its final form, how it starts, and what is streamed in between."""

    whole: Json
    blank: Json
    delta_type: str
    delta_field: str
    content: str


def _blocks(reply: Reply, reply_id: str) -> Iterator[_Block]:
    if reply.thinking:
        yield _thinking_block(reply.thinking)
    if reply.text:
        yield _text_block(reply.text)
    for number, call in enumerate(reply.tool_calls):
        yield _tool_block(call, f"toolu_{reply_id}_{number}")


def _thinking_block(thinking: str) -> _Block:
    return _Block(
        whole={"type": "thinking", "thinking": thinking, "signature": SIGNATURE},
        blank={"thinking": "", "signature": ""},
        delta_type="thinking_delta",
        delta_field="thinking",
        content=thinking,
    )


def _text_block(text: str) -> _Block:
    return _Block(
        whole={"type": "text", "text": text},
        blank={"text": ""},
        delta_type="text_delta",
        delta_field="text",
        content=text,
    )


def _tool_block(call: ToolCall, call_id: str) -> _Block:
    return _Block(
        whole={"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments},
        blank={"input": {}},
        delta_type="input_json_delta",
        delta_field="partial_json",
        content=call.arguments_text,
    )


def _block_events(index: int, block: _Block, reply: Reply) -> Iterator[StreamEvent]:
    yield StreamEvent({"type": "content_block_start", "index": index, "content_block": block.whole | block.blank})
    for chunk in reply.chunks(block.content):
        delta = {"type": block.delta_type, block.delta_field: chunk}
        yield StreamEvent({"type": "content_block_delta", "index": index, "delta": delta}, is_chunk=True)
    if "signature" in block.whole:
        delta = {"type": "signature_delta", "signature": block.whole["signature"]}
        yield StreamEvent({"type": "content_block_delta", "index": index, "delta": delta})
    yield StreamEvent({"type": "content_block_stop", "index": index})


def _message(model: str, reply_id: str) -> Json:
    """Return the message before it has any content."""
    return {
        "id": f"msg_{reply_id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(reply: Reply, output_tokens: int) -> Json:
    return {
        "input_tokens": reply.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.cached_tokens,
        "output_tokens": output_tokens,
    }


def _stop_reason(reply: Reply) -> str:
    return reply.stop_reason or ("tool_use" if reply.tool_calls else "end_turn")


ANTHROPIC = VendorApi(
    name="anthropic",
    paths=("/v1/messages",),
    side_answer=side_answer,
    answer=answer,
    stream=stream,
    error_body=error_body,
)
