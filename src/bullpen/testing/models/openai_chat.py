"""OpenAI's Chat Completions API, which qwen uses: https://platform.openai.com/docs/api-reference/chat/streaming."""

from collections.abc import Iterator

from bullpen.testing.models.openai import error_body
from bullpen.testing.models.script import ModelRequest, Reply, ToolCall
from bullpen.testing.models.vendor import NOT_FOUND, NOT_JSON, Json, StreamEvent, VendorApi, fitting_reply

FINISH_REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


def side_answer(request: ModelRequest) -> Reply | Json | None:
    """Return the reply to a call that is not part of the conversation."""
    match request.method, request.path, request.body:
        case "POST", "/v1/chat/completions", {"response_format": {"json_schema": {"schema": schema}}}:
            return fitting_reply(schema)
        case "POST", "/v1/chat/completions", dict():
            return None
        case "POST", "/v1/chat/completions", _:
            return NOT_JSON
        case _:
            return NOT_FOUND


def answer(reply: Reply, model: str, reply_id: str) -> Json:
    """Return the answer in one piece."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.tool_calls:
        message["tool_calls"] = [
            _tool_call(call, f"call_{reply_id}_{number}") for number, call in enumerate(reply.tool_calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    return _completion("chat.completion", model, reply_id) | {"choices": [choice], "usage": _usage(reply)}


def stream(reply: Reply, model: str, reply_id: str) -> Iterator[StreamEvent]:
    """Return the answer as the events of a stream. OpenAI adds a [DONE], which is not JSON and not needed."""
    begun = _completion("chat.completion.chunk", model, reply_id)

    def event(delta: Json, *, is_chunk: bool = False, finish_reason: str | None = None) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return StreamEvent(begun | {"choices": [choice]}, is_chunk)

    yield event({"role": "assistant", "content": ""})
    for delta in _deltas(reply):
        yield event(delta, is_chunk=True)
    for number, call in enumerate(reply.tool_calls):
        begun_call = _tool_call(call, f"call_{reply_id}_{number}")
        begun_call["function"]["arguments"] = ""
        yield event({"tool_calls": [{"index": number, **begun_call}]})
        for piece in reply.chunks(call.arguments_text):
            yield event({"tool_calls": [{"index": number, "function": {"arguments": piece}}]}, is_chunk=True)
    yield event({}, finish_reason=_finish_reason(reply))
    yield StreamEvent(begun | {"choices": [], "usage": _usage(reply)})


def _deltas(reply: Reply) -> Iterator[Json]:
    # OpenAI does not send the model's thinking; Qwen, DeepSeek and others send it here.
    for thought in reply.chunks(reply.thinking):
        yield {"reasoning_content": thought}
    for text in reply.chunks(reply.text):
        yield {"content": text}


def _tool_call(call: ToolCall, call_id: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}


def _completion(kind: str, model: str, reply_id: str) -> Json:
    """Return the fields that every answer and every event has."""
    return {"id": f"chatcmpl-{reply_id}", "object": kind, "created": 1_700_000_000, "model": model}


def _finish_reason(reply: Reply) -> str:
    reason = reply.stop_reason or ("tool_use" if reply.tool_calls else "end_turn")
    return FINISH_REASONS.get(reason, reason)


def _usage(reply: Reply) -> Json:
    return {
        "prompt_tokens": reply.input_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }


OPENAI_CHAT = VendorApi(
    name="openai",
    paths=("/v1/chat/",),
    side_answer=side_answer,
    answer=answer,
    stream=stream,
    error_body=error_body,
)
