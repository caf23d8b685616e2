"""ModelServer: the vendors' APIs on loopback, answering from a script."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

from bullpen.testing.models.anthropic import ANTHROPIC
from bullpen.testing.models.gemini import GEMINI
from bullpen.testing.models.http import ConnectionDropped, HttpRequest, HttpResponse, HttpServer, json_response
from bullpen.testing.models.openai import OPENAI
from bullpen.testing.models.openai_chat import OPENAI_CHAT
from bullpen.testing.models.script import ModelRequest, Reply, Script, Vendor
from bullpen.testing.models.vendor import Json, StreamEvent, VendorApi

VENDORS = (ANTHROPIC, OPENAI, OPENAI_CHAT, GEMINI)
SECRET_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
POLLING_SECONDS = 0.005
DEFAULT_REPLY = Reply(text="This is a scripted answer.")


class ModelServer(HttpServer):
    """Answers model calls with its script, in order, and then repeats the last reply.

    An error raised by a function of the script is raised again when the server's context ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []
        """The model calls, in order."""
        self.side_requests: list[ModelRequest] = []
        """All other requests: tokens to count, a title for the session, paths that do not exist."""
        self._script: deque[Script] = deque()
        self._last: Script = DEFAULT_REPLY

    @property
    def base_url(self) -> str:
        """The address of the server, without a vendor's path."""
        return f"http://127.0.0.1:{self.port}"

    def script(self, *replies: Script) -> None:
        """Add replies to the script."""
        self._script.extend(replies)

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the next answer in the script; calls outside the conversation get theirs from the vendor."""
        api = next((api for api in VENDORS if request.path.startswith(api.paths)), None)
        recorded = _recorded(request, api.name if api else "unknown")
        if api is None:
            self.side_requests.append(recorded)
            return json_response({"error": {"message": "Not found"}}, 404)
        side_answer = api.side_answer(recorded)
        if side_answer is not None:
            self.side_requests.append(recorded)
            return _response(side_answer, recorded, api)
        self.requests.append(recorded)
        reply = self._next_reply(recorded)
        await asyncio.sleep(reply.delay_seconds)
        return _response(reply, recorded, api)

    def _next_reply(self, request: ModelRequest) -> Reply:
        if self._script:
            self._last = self._script.popleft()
        return self._last if isinstance(self._last, Reply) else self._last(request)


def _recorded(request: HttpRequest, vendor: Vendor) -> ModelRequest:
    return ModelRequest(
        vendor=vendor,
        method=request.method,
        path=request.path,
        query=request.query,
        headers={name: "***" if name in SECRET_HEADERS else value for name, value in request.headers.items()},
        body=_json_or_none(request.body),
        raw=request.body,
    )


def _json_or_none(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _response(answer: Reply | Json, request: ModelRequest, api: VendorApi) -> HttpResponse:
    if isinstance(answer, dict):
        return json_response(answer)
    if answer.error is not None:
        seconds = answer.retry_after_seconds
        headers = {} if seconds is None else {"retry-after": str(seconds)}
        return json_response(api.error_body(answer), answer.error, {**headers, **answer.headers})
    if request.wants_stream:
        events = api.stream(answer, request.model, uuid4().hex)
        return HttpResponse(headers={**STREAM_HEADERS, **answer.headers}, body=_paced(events, answer))
    if answer.drop_after_chunks is not None:
        return HttpResponse(body=_broken_off())
    return json_response(api.answer(answer, request.model, uuid4().hex), headers=answer.headers)


async def _paced(events: Iterable[StreamEvent], reply: Reply) -> AsyncGenerator[bytes, None]:
    chunks = 0
    for event in events:
        if chunks == reply.drop_after_chunks and (chunks or event.is_chunk):
            raise ConnectionDropped
        if chunks and reply.wait_for is not None:
            await _until_exists(reply.wait_for)
        if event.is_chunk:
            await asyncio.sleep(reply.chunk_delay_seconds if chunks else 0)
            chunks += 1
        yield _server_sent(event.data)


async def _until_exists(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(POLLING_SECONDS)


def _server_sent(data: Json) -> bytes:
    # Anthropic and OpenAI name their events, and repeat the name in the data.
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


async def _broken_off() -> AsyncGenerator[bytes, None]:
    """Raise before the only chunk of an answer in one piece."""
    raise ConnectionDropped
    yield b""
