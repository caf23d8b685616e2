"""What a scripted model says, and what it was asked."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

Vendor = Literal["anthropic", "openai", "gemini", "unknown"]


class ToolCall(Struct, frozen=True, kw_only=True):
    """One tool call of the model, with the CLI's name for the tool."""

    name: str
    arguments: Mapping[str, Any] | str
    """Text is sent unchanged. codex's free-form tools (apply_patch) accept it; for other CLIs it is a broken call."""
    namespace: str = ""
    """The server that has the tool, where a model names that apart from the tool: in OpenAI's Responses API."""

    @property
    def arguments_text(self) -> str:
        """The arguments as the model writes them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


class Reply(Struct, frozen=True, kw_only=True):
    """One answer of the model: thinking, text and tool calls, in this order; or a failure."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: str | None = None
    """In Anthropic's terms ("max_tokens", "refusal"), translated for the others; None: the answer is complete."""

    error: int | None = None
    """The HTTP status of a failure, which has no text."""
    error_message: str = "scripted error"
    retry_after_seconds: int | None = None
    error_fields: Mapping[str, Any] = {}
    """What else is in the error, or is there instead: a vendor's own words about a quota."""
    headers: Mapping[str, str] = {}
    """What else is in the headers of the answer or the error: how much of a quota is used, for example."""

    delay_seconds: float = 0.0
    """Before the first byte."""
    chunk_characters: int = 40
    """How much of the text, the thinking or a tool's arguments is in one event of a stream."""
    chunk_delay_seconds: float = 0.0
    """Between two chunks."""
    wait_for: Path | None = None
    """All but the first chunk waits until this file exists."""
    drop_after_chunks: int | None = None
    """Close the connection after this many chunks. An answer with fewer chunks arrives whole."""

    input_tokens: int = 111
    output_tokens: int = 22
    cached_tokens: int = 11

    def __post_init__(self) -> None:
        if self.chunk_characters < 1:
            raise ValueError(f"chunk_characters must be positive, got {self.chunk_characters}")

    def chunks(self, text: str) -> Iterator[str]:
        """Return the text split into the pieces of each event."""
        return (text[start : start + self.chunk_characters] for start in range(0, len(text), self.chunk_characters))


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request as it arrived, with its secrets masked."""

    vendor: Vendor
    """Whose API the path belongs to."""
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """The JSON value; None if it is not JSON."""
    raw: bytes
    """The body's bytes, decompressed."""

    @property
    def model(self) -> str:
        """The requested model: Gemini's is in the path, the others' in the body."""
        match self.body:
            case {"model": str(model)}:
                return model
            case _:
                return self.path.rpartition("/")[2].partition(":")[0]

    @property
    def wants_stream(self) -> bool:
        """Whether the answer should be streamed."""
        match self.body:
            case {"stream": True}:
                return True
            case _:
                return self.path.endswith(":streamGenerateContent")

    @property
    def texts(self) -> list[str]:
        """Every text in the body, in order: if `prompt in request.texts`, it arrived unchanged."""
        return list(_texts(self.body))


Script = Reply | Callable[[ModelRequest], Reply]
"""A reply, or how to find one."""


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
