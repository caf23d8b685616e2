"""The scripted models, asked over real sockets: every byte of every API, and clients that behave badly."""

import asyncio
import gzip
import http.client
import json
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.testing.models import ModelRequest, ModelServer, Reply, ToolCall
from bullpen.testing.models.server import VENDORS
from bullpen.testing.models.vendor import VendorApi, example_of

Json = dict[str, Any]

MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
CHAT = "/v1/chat/completions"
GENERATE = "/v1beta/models/gemini-x:generateContent"
STREAM_GENERATE = "/v1beta/models/gemini-x:streamGenerateContent"

# How each API is asked for a stream, and for an answer in one piece.
STREAMED: dict[str, tuple[str, Json]] = {
    "anthropic": (MESSAGES, {"model": "claude-x", "stream": True}),
    "openai": (RESPONSES, {"model": "gpt-x", "stream": True}),
    "openai-chat": (CHAT, {"model": "qwen-x", "stream": True}),
    "gemini": (f"{STREAM_GENERATE}?alt=sse", {"contents": []}),
}
WHOLE: dict[str, tuple[str, Json]] = {
    "anthropic": (MESSAGES, {"model": "claude-x"}),
    "openai": (RESPONSES, {"model": "gpt-x"}),
    "openai-chat": (CHAT, {"model": "qwen-x"}),
    "gemini": (GENERATE, {"contents": []}),
}
STREAMED_JSON = (MESSAGES, json.dumps(STREAMED["anthropic"][1]))
every_api = pytest.mark.parametrize("api", STREAMED)

BASH = ToolCall(name="Bash", arguments={"command": "ls"})
PATCH = ToolCall(name="apply_patch", arguments="*** Begin Patch")


@contextmanager
def serving(*script: Reply | Callable[[ModelRequest], Reply]) -> Iterator[ModelServer]:
    """Run a server in a thread of its own, so that a test can ask it with a client that blocks."""
    models = ModelServer()
    models.script(*script)
    started = threading.Event()
    ended = asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with models:
            started.set()
            await ended.wait()

    with ThreadPoolExecutor(1) as threads, closing(loop):
        serving = threads.submit(loop.run_until_complete, serve())
        assert started.wait(timeout=10)
        try:
            yield models
        finally:
            loop.call_soon_threadsafe(ended.set)
            serving.exception()
        serving.result()


def connected(models: ModelServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", models.port, timeout=60)


def connected_socket(models: ModelServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", models.port), timeout=60)


def ask(
    models: ModelServer, path: str, body: Any = None, *, method: str = "POST", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Return the status, the body and the headers of an answer."""
    with closing(connected(models)) as connection:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, raw, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}


def ask_json(models: ModelServer, path: str, body: Any = None, *, method: str = "POST") -> tuple[int, Json]:
    status, raw, headers = ask(models, path, body, method=method)
    assert headers["content-type"] == "application/json"
    return status, json.loads(raw)


def with_plain_ids(raw: bytes) -> bytes:
    return re.sub(rb"[0-9a-f]{32}", b"ID", raw)


def answer_of(models: ModelServer, path: str, body: Json) -> Any:
    """Return an answer in one piece, with "ID" for its id."""
    status, raw, _ = ask(models, path, body)
    assert status == 200
    return json.loads(with_plain_ids(raw))


def stream_of(models: ModelServer, path: str, body: Json) -> list[Json]:
    """Return the data of a stream's events, with "ID" for its id."""
    status, raw, headers = ask(models, path, body)
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    return events_of(with_plain_ids(raw))


def events_of(raw: bytes) -> list[Json]:
    """Return the data of server-sent events, after a look at their names."""
    events = []
    for block in raw.decode().removesuffix("\n\n").split("\n\n"):
        *names, line = block.split("\n")
        data = json.loads(line.removeprefix("data: "))
        assert names == ([f"event: {data['type']}"] if "type" in data else [])
        events.append(data)
    return events


def test_anthropic_streams_thinking_text_and_tools() -> None:
    reply = Reply(thinking="hmm", text="hello 你好", tool_calls=(BASH,), chunk_characters=6)
    usage = {"input_tokens": 111, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 11, "output_tokens": 1}

    with serving(reply) as models:
        events = stream_of(models, *STREAMED["anthropic"])

    def delta(index: int, **fields: str) -> Json:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    def start(index: int, **fields: Any) -> Json:
        return {"type": "content_block_start", "index": index, "content_block": fields}

    def stop(index: int) -> Json:
        return {"type": "content_block_stop", "index": index}

    assert events == [
        {
            "type": "message_start",
            "message": {
                "id": "msg_ID",
                "type": "message",
                "role": "assistant",
                "model": "claude-x",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            },
        },
        {"type": "ping"},
        start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="hmm"),
        delta(0, type="signature_delta", signature="c2NyaXB0ZWQ="),
        stop(0),
        start(1, type="text", text=""),
        delta(1, type="text_delta", text="hello "),
        delta(1, type="text_delta", text="你好"),
        stop(1),
        start(2, type="tool_use", id="toolu_ID_0", name="Bash", input={}),
        delta(2, type="input_json_delta", partial_json='{"comm'),
        delta(2, type="input_json_delta", partial_json='and": '),
        delta(2, type="input_json_delta", partial_json='"ls"}'),
        stop(2),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 22},
        },
        {"type": "message_stop"},
    ]


def test_anthropic_answers_in_one_piece() -> None:
    with serving(Reply(thinking="hmm", text="hello", tool_calls=(BASH,))) as models:
        message = answer_of(models, *WHOLE["anthropic"])

    assert message == {
        "id": "msg_ID",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hmm", "signature": "c2NyaXB0ZWQ="},
            {"type": "text", "text": "hello"},
            {"type": "tool_use", "id": "toolu_ID_0", "name": "Bash", "input": {"command": "ls"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 111,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 11,
            "output_tokens": 22,
        },
    }


BEGUN_RESPONSE: Json = {
    "id": "resp_ID",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "model": "gpt-x",
    "output": [],
    "usage": None,
}
RESPONSE_USAGE: Json = {
    "input_tokens": 111,
    "input_tokens_details": {"cached_tokens": 11},
    "output_tokens": 22,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 133,
}


def test_openai_streams_reasoning_and_text() -> None:
    with serving(Reply(thinking="hmm", text="hello 你好", chunk_characters=6)) as models:
        events = stream_of(models, *STREAMED["openai"])

    thought = {"type": "summary_text", "text": "hmm"}
    reasoning = {"id": "rs_ID", "type": "reasoning", "summary": [thought], "encrypted_content": "c2NyaXB0ZWQ="}
    text = {"type": "output_text", "text": "hello 你好", "annotations": [], "logprobs": []}
    message = {"id": "msg_ID", "type": "message", "status": "completed", "role": "assistant", "content": [text]}
    in_thought = {"item_id": "rs_ID", "output_index": 0, "summary_index": 0}
    in_text = {"item_id": "msg_ID", "output_index": 1, "content_index": 0}
    expected: list[Json] = [
        {"type": "response.created", "response": BEGUN_RESPONSE},
        {"type": "response.in_progress", "response": BEGUN_RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": {**reasoning, "summary": []}},
        {"type": "response.reasoning_summary_part.added", **in_thought, "part": {**thought, "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **in_thought, "delta": "hmm"},
        {"type": "response.reasoning_summary_text.done", **in_thought, "text": "hmm"},
        {"type": "response.reasoning_summary_part.done", **in_thought, "part": thought},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **in_text, "part": {**text, "text": ""}},
        {"type": "response.output_text.delta", **in_text, "delta": "hello "},
        {"type": "response.output_text.delta", **in_text, "delta": "你好"},
        {"type": "response.output_text.done", **in_text, "text": "hello 你好"},
        {"type": "response.content_part.done", **in_text, "part": text},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {
            "type": "response.completed",
            "response": {
                **BEGUN_RESPONSE,
                "status": "completed",
                "output": [reasoning, message],
                "usage": RESPONSE_USAGE,
            },
        },
    ]
    assert events == [{**event, "sequence_number": number} for number, event in enumerate(expected)]


def test_openai_streams_functions_and_free_form_tools() -> None:
    shell = ToolCall(name="exec_command", arguments={"cmd": "ls"})
    with serving(Reply(tool_calls=(shell, PATCH), chunk_characters=8)) as models:
        events = [event for event in stream_of(models, *STREAMED["openai"]) if "response" not in event]

    function = {
        "id": "fc_ID_0",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_ID_0",
        "name": "exec_command",
        "arguments": '{"cmd": "ls"}',
    }
    patch = {
        "id": "ctc_ID_1",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_ID_1",
        "name": "apply_patch",
        "input": "*** Begin Patch",
    }
    in_function = {"item_id": "fc_ID_0", "output_index": 0}
    in_patch = {"item_id": "ctc_ID_1", "output_index": 1}
    expected: list[Json] = [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**function, "status": "in_progress", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", **in_function, "delta": '{"cmd": '},
        {"type": "response.function_call_arguments.delta", **in_function, "delta": '"ls"}'},
        {"type": "response.function_call_arguments.done", **in_function, "arguments": '{"cmd": "ls"}'},
        {"type": "response.output_item.done", "output_index": 0, "item": function},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**patch, "status": "in_progress", "input": ""},
        },
        {"type": "response.custom_tool_call_input.delta", **in_patch, "delta": "*** Begi"},
        {"type": "response.custom_tool_call_input.delta", **in_patch, "delta": "n Patch"},
        {"type": "response.custom_tool_call_input.done", **in_patch, "input": "*** Begin Patch"},
        {"type": "response.output_item.done", "output_index": 1, "item": patch},
    ]
    assert events == [{**event, "sequence_number": number} for number, event in enumerate(expected, start=2)]


def test_openai_answers_in_one_piece() -> None:
    with serving(Reply(text="half", stop_reason="max_tokens")) as models:
        response = answer_of(models, *WHOLE["openai"])
        last = stream_of(models, *STREAMED["openai"])[-1]

    text = {"type": "output_text", "text": "half", "annotations": [], "logprobs": []}
    assert response == {
        **BEGUN_RESPONSE,
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [
            {"id": "msg_ID", "type": "message", "status": "completed", "role": "assistant", "content": [text]},
        ],
        "usage": RESPONSE_USAGE,
    }
    assert (last["type"], last["response"]) == ("response.incomplete", response)


CHAT_USAGE: Json = {
    "prompt_tokens": 111,
    "prompt_tokens_details": {"cached_tokens": 11},
    "completion_tokens": 22,
    "total_tokens": 133,
}


def test_openai_chat_streams_thinking_text_and_tools() -> None:
    reply = Reply(thinking="hmm", text="hello 你好", tool_calls=(BASH,), chunk_characters=10)

    with serving(reply) as models:
        events = stream_of(models, *STREAMED["openai-chat"])

    begun = {"id": "chatcmpl-ID", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "qwen-x"}

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**begun, "choices": [choice]}

    function = {"name": "Bash", "arguments": ""}
    assert events == [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hmm"}),
        chunk({"content": "hello 你好"}),
        chunk({"tool_calls": [{"index": 0, "id": "call_ID_0", "type": "function", "function": function}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"command"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ': "ls"}'}}]}),
        chunk({}, "tool_calls"),
        {**begun, "choices": [], "usage": CHAT_USAGE},
    ]


def test_openai_chat_answers_in_one_piece() -> None:
    with serving(Reply(thinking="hmm", text="hello", tool_calls=(BASH,))) as models:
        completion = answer_of(models, *WHOLE["openai-chat"])

    function = {"name": "Bash", "arguments": '{"command": "ls"}'}
    message = {
        "role": "assistant",
        "content": "hello",
        "reasoning_content": "hmm",
        "tool_calls": [{"id": "call_ID_0", "type": "function", "function": function}],
    }
    assert completion == {
        "id": "chatcmpl-ID",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "qwen-x",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}],
        "usage": CHAT_USAGE,
    }


GEMINI_USAGE: Json = {
    "promptTokenCount": 111,
    "cachedContentTokenCount": 11,
    "candidatesTokenCount": 22,
    "totalTokenCount": 133,
}


def gemini_response(*parts: Json, **end: str) -> Json:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **end}
    return {"candidates": [candidate], "modelVersion": "gemini-x", "responseId": "ID"}


def test_gemini_streams_thinking_text_and_tools() -> None:
    reply = Reply(thinking="hmm", text="hello 你好", tool_calls=(BASH,), chunk_characters=6)

    with serving(reply) as models:
        events = stream_of(models, *STREAMED["gemini"])

    call = {"id": "call_ID_0", "name": "Bash", "args": {"command": "ls"}}
    assert events == [
        gemini_response({"text": "hmm", "thought": True}),
        gemini_response({"text": "hello "}),
        gemini_response({"text": "你好"}),
        gemini_response({"functionCall": call}),
        {**gemini_response({"text": ""}, finishReason="STOP"), "usageMetadata": GEMINI_USAGE},
    ]


def test_gemini_answers_in_one_piece() -> None:
    with serving(Reply(thinking="hmm", text="half", stop_reason="max_tokens")) as models:
        response = answer_of(models, *WHOLE["gemini"])

    parts = ({"text": "hmm", "thought": True}, {"text": "half"})
    expected = gemini_response(*parts, finishReason="MAX_TOKENS")
    assert response == {**expected, "usageMetadata": GEMINI_USAGE}


def text_in(events: list[Json]) -> str:
    """Return what the events of any API say."""
    pieces = []
    for event in events:
        match event:
            case (
                {"type": "content_block_delta", "delta": {"text": text}}
                | {"type": "response.output_text.delta", "delta": text}
                | {"choices": [{"delta": {"content": text}}]}
                | {"candidates": [{"content": {"parts": [{"text": text}]}}]}
            ):
                pieces.append(text)
    return "".join(pieces)


@every_api
def test_an_answer_of_a_megabyte_arrives_whole(api: str) -> None:
    text = "".join(f"line {number} 你好 😀\n" for number in range(46_000))
    assert len(text.encode()) > 1_000_000

    with serving(Reply(text=text, chunk_characters=1000)) as models:
        assert text_in(stream_of(models, *STREAMED[api])) == text


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.paths[0])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1), size=st.integers(1, 5))
def test_a_stream_says_what_the_whole_answer_says(vendor: VendorApi, text: str, size: int) -> None:
    events = list(vendor.stream(Reply(text=text, chunk_characters=size), "model", "id"))

    assert text_in([event.data for event in events]) == text
    assert sum(event.is_chunk for event in events) == -(-len(text) // size)


STATUSES = [
    ("anthropic", 400, "invalid_request_error"),
    ("anthropic", 401, "authentication_error"),
    ("anthropic", 403, "permission_error"),
    ("anthropic", 429, "rate_limit_error"),
    ("anthropic", 500, "api_error"),
    ("anthropic", 529, "overloaded_error"),
    ("openai", 400, "invalid_request_error"),
    ("openai", 401, "invalid_request_error"),
    ("openai", 429, "rate_limit_error"),
    ("openai-chat", 429, "rate_limit_error"),
    ("openai", 503, "server_error"),
    ("gemini", 400, "INVALID_ARGUMENT"),
    ("gemini", 401, "UNAUTHENTICATED"),
    ("gemini", 403, "PERMISSION_DENIED"),
    ("gemini", 429, "RESOURCE_EXHAUSTED"),
    ("gemini", 500, "INTERNAL"),
    ("gemini", 503, "UNAVAILABLE"),
    ("gemini", 529, "UNKNOWN"),
]


@pytest.mark.parametrize(("api", "status", "kind"), STATUSES)
def test_an_error_has_its_status_and_the_vendors_word_for_it(api: str, status: int, kind: str) -> None:
    with serving(Reply(error=status, error_message="no luck")) as models:
        received, body = ask_json(models, *STREAMED[api])

    assert received == status
    assert body["error"]["message"] == "no luck"
    assert kind in (body["error"].get("type"), body["error"].get("status"))


def test_errors_are_shaped_as_each_vendor_shapes_them() -> None:
    with serving(Reply(error=429, error_message="slow down", retry_after_seconds=7)) as models:
        bodies = {api: ask_json(models, *call)[1] for api, call in STREAMED.items()}
        headers = {api: ask(models, *call)[2]["retry-after"] for api, call in STREAMED.items()}

    openai = {"message": "slow down", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
    gemini = {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": [retry]}
    assert bodies == {
        "anthropic": {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}},
        "openai": {"error": openai},
        "openai-chat": {"error": openai},
        "gemini": {"error": gemini},
    }
    assert set(headers.values()) == {"7"}


@every_api
@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_dropped_stream_ends_without_its_end(api: str, chunks: int) -> None:
    path, body = STREAMED[api]
    with serving(Reply(text="one two three", chunk_characters=4, drop_after_chunks=chunks)) as models:
        with closing(connected(models)) as connection:
            connection.request("POST", path, json.dumps(body))
            with pytest.raises(http.client.IncompleteRead) as dropped:
                connection.getresponse().read()
        assert len(models.requests) == 1

    received = dropped.value.partial
    assert text_in(events_of(received) if received else []) == "one two three"[: 4 * chunks]
    # Gemini's streams have nothing before the first chunk.
    assert bool(received) == (chunks > 0 or api != "gemini")


@every_api
def test_an_answer_in_one_piece_is_dropped_before_it(api: str) -> None:
    path, body = WHOLE[api]
    with serving(Reply(text="hello", drop_after_chunks=3), Reply(text="again")) as models:
        with closing(connected(models)) as connection:
            connection.request("POST", path, json.dumps(body))
            with pytest.raises(http.client.IncompleteRead):
                connection.getresponse().read()
        assert b"again" in ask(models, path, body)[1]


@every_api
def test_an_answer_shorter_than_its_drop_arrives_whole(api: str) -> None:
    with serving(Reply(text="hello", drop_after_chunks=9)) as models:
        assert text_in(stream_of(models, *STREAMED[api])) == "hello"


def test_a_slow_stream_shows_its_first_chunk_at_once_and_ends_with_the_server() -> None:
    with serving(Reply(text="first second", chunk_characters=6, chunk_delay_seconds=3600)) as models:
        connection = connected(models)
        connection.request("POST", *STREAMED_JSON)
        response = connection.getresponse()
        received = b""
        while b"first" not in received:
            received += response.readline()

    with closing(connection), pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    assert b"second" not in received


def test_a_delay_comes_before_the_first_byte() -> None:
    with (
        serving(Reply(text="hello", delay_seconds=3600)) as models,
        closing(http.client.HTTPConnection("127.0.0.1", models.port, timeout=0.2)) as connection,
    ):
        connection.request("POST", *STREAMED_JSON)
        with pytest.raises(TimeoutError):
            connection.getresponse()
        while not models.requests:
            time.sleep(0.01)


def said(models: ModelServer, body: Json | None = None) -> str:
    _, raw, _ = ask(models, MESSAGES, {"model": "claude-x", **(body or {})})
    return "".join(block.get("text", "") for block in json.loads(raw)["content"])


def test_replies_come_in_order_and_the_last_is_repeated() -> None:
    with serving(Reply(text="one"), Reply(text="two")) as models:
        answers = [said(models) for _ in range(4)]
        models.script(Reply(text="three"))
        answers.append(said(models))

    assert answers == ["one", "two", "two", "two", "three"]


def test_without_a_script_there_is_an_answer() -> None:
    with serving() as models:
        assert said(models) == "This is a scripted answer."


def test_a_reply_can_depend_on_the_request() -> None:
    with serving(lambda request: Reply(text=f"{request.model} was asked {request.texts[-1]}")) as models:
        answers = [said(models, {"messages": [{"content": "one"}]}), said(models, {"messages": [{"content": "two"}]})]

    assert answers == ["claude-x was asked one", "claude-x was asked two"]


def test_what_a_function_of_the_script_raises_is_raised_again() -> None:
    def complain(request: ModelRequest) -> Reply:
        raise AssertionError(f"{request.model} should not be asked")

    with (
        pytest.raises(AssertionError, match="claude-x should not be asked"),
        serving(complain) as models,
        pytest.raises(http.client.RemoteDisconnected),
    ):
        said(models)


def test_chunks_without_characters_are_refused() -> None:
    with pytest.raises(ValueError, match="chunk_characters must be positive, got 0"):
        Reply(chunk_characters=0)


TITLE = {"type": "object", "properties": {"title": {"type": "string"}}}
ROUTE = {
    "type": "OBJECT",
    "properties": {"complexity_reasoning": {"type": "STRING"}, "complexity_score": {"type": "INTEGER"}},
}


def test_calls_beside_the_conversation_use_up_no_script() -> None:
    with serving(Reply(text="the answer")) as models:
        counted = ask_json(models, f"{MESSAGES}/count_tokens", {"messages": []})
        counted_by_google = ask_json(models, GENERATE.replace("generateContent", "countTokens"), {"contents": []})
        head = ask(models, "/", method="HEAD")
        unknown = ask_json(models, "/v2/nothing", {})
        unknown_of_a_vendor = ask_json(models, f"{MESSAGES}/batches", {})
        models_listed = ask_json(models, "/v1/models", method="GET")
        websocket = ask(models, RESPONSES, b"", method="GET", connection="upgrade", upgrade="websocket")
        title = said(models, {"output_config": {"format": {"type": "json_schema", "schema": TITLE}}})
        route = answer_of(models, GENERATE, {"generationConfig": {"responseJsonSchema": ROUTE}})
        answer = said(models)

    assert counted == (200, {"input_tokens": 4})
    assert counted_by_google == (200, {"totalTokens": 4})
    assert (head[0], head[1], head[2]["content-length"]) == (404, b"", "35")
    assert unknown == (404, {"error": {"message": "Not found"}})
    assert unknown_of_a_vendor == (
        404,
        {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}},
    )
    assert models_listed == (200, {"object": "list", "data": []})
    assert websocket[0] == 426
    assert json.loads(title) == {"title": "scripted"}
    assert json.loads(route["candidates"][0]["content"]["parts"][0]["text"]) == {
        "complexity_reasoning": "scripted",
        "complexity_score": 1,
    }
    assert route["usageMetadata"]["totalTokenCount"] == 0
    assert answer == "the answer"
    assert [request.path for request in models.requests] == [MESSAGES]
    assert [(request.vendor, request.method) for request in models.side_requests] == [
        ("anthropic", "POST"),
        ("gemini", "POST"),
        ("unknown", "HEAD"),
        ("unknown", "POST"),
        ("anthropic", "POST"),
        ("openai", "GET"),
        ("openai", "GET"),
        ("anthropic", "POST"),
        ("gemini", "POST"),
    ]


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "string", "enum": ["flash", "pro"]}, "flash"),
        ({"const": 7}, 7),
        ({"type": "number", "minimum": 3}, 3),
        ({"type": "BOOLEAN"}, False),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "items": {"type": "integer"}}, []),
        ({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}]}, {"a": "scripted"}),
        (True, "scripted"),
    ],
)
def test_an_example_fits_its_schema(schema: Any, example: Any) -> None:
    assert example_of(schema) == example


def test_a_request_is_recorded_with_its_secrets_blotted_out() -> None:
    body = {"model": "claude-x", "stream": True, "messages": [{"role": "user", "content": "你好"}]}
    raw = json.dumps(body, ensure_ascii=False).encode()
    secrets = {"authorization": "Bearer sk-1", "x_api_key": "sk-2", "x_goog_api_key": "AIza3"}

    with serving() as models:
        ask(models, f"{MESSAGES}?beta=true", raw, x_app="cli", **secrets)

    (request,) = models.requests
    headers = {"authorization": "***", "x-api-key": "***", "x-goog-api-key": "***", "x-app": "cli"}
    sent_by_the_client = {
        "host": f"127.0.0.1:{models.port}",
        "accept-encoding": "identity",
        "content-length": str(len(raw)),
    }
    assert request == ModelRequest(
        vendor="anthropic",
        method="POST",
        path=MESSAGES,
        query="beta=true",
        headers={**headers, **sent_by_the_client},
        body=body,
        raw=raw,
    )
    assert (request.model, request.wants_stream) == ("claude-x", True)
    assert request.texts == ["claude-x", "user", "你好"]


def test_geminis_model_stands_in_the_path() -> None:
    with serving() as models:
        ask(models, *STREAMED["gemini"])
        ask(models, *WHOLE["gemini"])

    assert [(request.model, request.wants_stream) for request in models.requests] == [
        ("gemini-x", True),
        ("gemini-x", False),
    ]


def test_a_connection_is_kept_for_the_next_request() -> None:
    script = (Reply(text="one"), Reply(error=500), Reply(text="three"))
    with serving(*script) as models, closing(connected(models)) as connection:
        connection.connect()
        first_socket = connection.sock
        statuses = []
        for _ in script:
            connection.request("POST", *STREAMED_JSON)
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)

        assert statuses == [200, 500, 200]
        assert connection.sock is first_socket


def test_a_connection_is_closed_when_the_client_asks_for_it() -> None:
    with serving() as models, connected_socket(models) as client:
        client.sendall(b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n")
        with client.makefile("rb") as answer:
            assert answer.read().endswith(b'{"object": "list", "data": []}')


HUGE_PROMPT = "你好 😀 {x} %s \\1\n" * 100_000


def test_huge_bodies_arrive_byte_exact_however_they_are_sent() -> None:
    body = {"model": "claude-x", "messages": [{"content": HUGE_PROMPT}]}
    raw = json.dumps(body, ensure_ascii=False).encode()
    assert len(raw) > 2_000_000
    pieces = [raw[start : start + 300_000] for start in range(0, len(raw), 300_000)]

    with serving() as models:
        ask(models, MESSAGES, raw)
        ask(models, MESSAGES, gzip.compress(raw, 1), content_encoding="gzip")
        ask(models, MESSAGES, zlib.compress(raw, 1), content_encoding="deflate")
        with closing(connected(models)) as connection:
            connection.request("POST", MESSAGES, iter(pieces), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
            connection.getresponse().read()

    assert [request.raw == raw for request in models.requests] == [True] * 4
    assert [HUGE_PROMPT in request.texts for request in models.requests] == [True] * 4


def test_a_client_that_waits_for_100_continue_is_told_to() -> None:
    with serving() as models, connected_socket(models) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        with client.makefile("rb") as answer:
            assert answer.readline() + answer.readline() == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(b"{}")
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"


POST = b"POST /v1/messages HTTP/1.1\r\n"
MALFORMED = {
    "no HTTP": (b"hello\r\n\r\n", 400),
    "an old HTTP": (b"GET / HTTP/1.0\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "no header": (b"GET / HTTP/1.1\r\nwhat is this\r\n\r\n", 400),
    "an endless line": (b"GET /" + b"x" * 200_000, 431),
    "a length in words": (POST + b"Content-Length: many\r\n\r\n", 400),
    "a negative length": (POST + b"Content-Length: -5\r\n\r\n", 413),
    "far too long a body": (POST + b"Content-Length: 99999999999\r\n\r\n", 413),
    "a broken chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcdef\r\n0\r\n\r\n", 400),
    "a chunk without a length": (POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    "no gzip": (POST + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 400),
    "an unknown encoding": (POST + b"Content-Encoding: zstd\r\nContent-Length: 3\r\n\r\nabc", 415),
}


@pytest.mark.parametrize(("sent", "status"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_request_is_refused_and_the_server_lives(sent: bytes, status: int) -> None:
    with serving(Reply(text="alive")) as models:
        with connected_socket(models) as client:
            client.sendall(sent)
            response = http.client.HTTPResponse(client)
            response.begin()
            refusal = json.loads(response.read())
            response.close()
        assert said(models) == "alive"

    assert response.status == status
    assert refusal["error"]["message"]


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/mess", POST + b"Content-Length: 99\r\n", POST + b"Content-Length: 9\r\n\r\n{}"]
)
def test_a_client_that_hangs_up_halfway_is_not_answered_and_the_server_lives(sent: bytes) -> None:
    with serving(Reply(text="alive")) as models:
        with connected_socket(models) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
        assert said(models) == "alive"
        assert len(models.requests) == 1


def test_a_client_that_stops_reading_does_not_hold_up_others_or_the_end() -> None:
    endless = Reply(text="x" * 20_000_000, chunk_characters=1_000_000)
    path, body = STREAMED_JSON
    with socket.socket() as client, serving(endless, Reply(text="alive")) as models:
        client.connect(("127.0.0.1", models.port))
        client.sendall(f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        assert said(models) == "alive"


@every_api
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused_in_the_vendors_shape(api: str, body: bytes) -> None:
    path, _ = STREAMED[api]
    with serving(Reply(text="alive")) as models:
        status, answer = ask_json(models, path, body)
        assert said(models) == "alive"

    assert status == 400
    assert answer["error"]["message"] == "The body is not a JSON object."
    assert [request.raw for request in models.side_requests] == [body]


def test_two_servers_do_not_share_anything() -> None:
    with serving(Reply(text="one")) as first, serving(Reply(text="two")) as second:
        assert (said(first), said(second)) == ("one", "two")
        assert len(first.requests) == len(second.requests) == 1


def test_an_answer_waits_for_a_file_after_its_first_chunk(tmp_path: Path) -> None:
    go = tmp_path / "go"
    path, body = STREAMED_JSON
    with socket.socket() as client, serving(Reply(text="onetwo", chunk_characters=3, wait_for=go)) as models:
        client.connect(("127.0.0.1", models.port))
        client.sendall(
            f"POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        answer = b""
        while b'"one"' not in answer:
            answer += client.recv(10_000)
        assert b'"two"' not in answer
        go.touch()
        while more := client.recv(10_000):
            answer += more
        assert b'"two"' in answer
