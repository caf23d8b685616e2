"""Google's Gemini API, which gemini uses: https://ai.google.dev/api/generate-content."""

from collections.abc import Callable, Iterator

from bullpen.testing.models.script import ModelRequest, Reply
from bullpen.testing.models.vendor import NOT_FOUND, NOT_JSON, Json, StreamEvent, VendorApi, fitting_reply

ERROR_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
FINISH_REASONS = {"end_turn": "STOP", "tool_use": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}


def side_answer(request: ModelRequest) -> Reply | Json | None:
    """Return the reply to a call that is not part of the conversation."""
    match request.method, request.path.rpartition(":")[2], request.body:
        # gemini asks this way which model should answer. A conversation's own calls never have a schema.
        case "POST", "generateContent", {"generationConfig": {"responseJsonSchema": schema}}:
            return fitting_reply(schema)
        case "POST", "generateContent", {"generationConfig": {"responseSchema": schema}}:
            return fitting_reply(schema)
        case "POST", "generateContent" | "streamGenerateContent", dict():
            return None
        case "POST", "countTokens", dict():
            return {"totalTokens": len(request.raw) // 4}
        case "POST", "generateContent" | "streamGenerateContent" | "countTokens", _:
            return NOT_JSON
        case _:
            return NOT_FOUND


def error_body(reply: Reply) -> Json:
    """Return the body of an error."""
    status = reply.error or 500
    error = {"code": status, "message": reply.error_message, "status": ERROR_STATUSES.get(status, "UNKNOWN")}
    return {"error": error | _retry_info(reply.retry_after_seconds) | dict(reply.error_fields)}


def _retry_info(seconds: int | None) -> Json:
    if seconds is None:
        return {}
    return {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}]}


def answer(reply: Reply, model: str, reply_id: str) -> Json:
    """Return the answer in one piece."""
    parts = _parts(reply, reply_id, cut=lambda text: iter([text] if text else []))
    return _response(list(parts), model, reply_id, _finish_reason(reply)) | {"usageMetadata": _usage(reply)}


def stream(reply: Reply, model: str, reply_id: str) -> Iterator[StreamEvent]:
    """Return the answer as the events of a stream: each looks like an answer, and the last has the finish reason."""
    for part in _parts(reply, reply_id, cut=reply.chunks):
        yield StreamEvent(_response([part], model, reply_id), is_chunk=True)
    end = _response([{"text": ""}], model, reply_id, _finish_reason(reply))
    yield StreamEvent(end | {"usageMetadata": _usage(reply)})


def _parts(reply: Reply, reply_id: str, cut: Callable[[str], Iterator[str]]) -> Iterator[Json]:
    for thought in cut(reply.thinking):
        yield {"text": thought, "thought": True}
    for text in cut(reply.text):
        yield {"text": text}
    for number, call in enumerate(reply.tool_calls):
        yield {"functionCall": {"id": f"call_{reply_id}_{number}", "name": call.name, "args": call.arguments}}


def _response(parts: list[Json], model: str, reply_id: str, finish_reason: str | None = None) -> Json:
    end = {"finishReason": finish_reason} if finish_reason else {}
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **end}
    return {"candidates": [candidate], "modelVersion": model, "responseId": reply_id}


def _finish_reason(reply: Reply) -> str:
    reason = reply.stop_reason or "end_turn"
    return FINISH_REASONS.get(reason, reason)


def _usage(reply: Reply) -> Json:
    return {
        "promptTokenCount": reply.input_tokens,
        "cachedContentTokenCount": reply.cached_tokens,
        "candidatesTokenCount": reply.output_tokens,
        "totalTokenCount": reply.input_tokens + reply.output_tokens,
    }


GEMINI = VendorApi(
    name="gemini",
    paths=("/v1beta/",),
    side_answer=side_answer,
    answer=answer,
    stream=stream,
    error_body=error_body,
)
