"""autogen-core: the context with a limit of tokens, and the one with a number of messages."""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.peers.stage import Call, serve, utf8_bytes

# By name, since the type checker's environment does not have it.
contexts = import_module("autogen_core.model_context")
models = import_module("autogen_core.models")


class ByteCounter:
    """The part of a model's client that the context uses: counting the tokens of messages."""

    def count_tokens(self, messages: Sequence[Any], *, tools: Sequence[Any] = ()) -> int:
        """Return the bytes of all messages."""
        assert not tools
        return sum([utf8_bytes(message.content) for message in messages])


def token_limited(texts: list[str], max_bytes: int) -> Call:
    """Return a call of TokenLimitedChatCompletionContext.get_messages. It removes messages from the middle."""
    context = contexts.TokenLimitedChatCompletionContext(ByteCounter(), token_limit=max_bytes)
    return _filled(context, texts)


def buffered(texts: list[str], max_bytes: int) -> Call:
    """Return a call of BufferedChatCompletionContext.get_messages. It counts messages; we pass it how many fit."""
    room, fit = max_bytes, 0
    for text in reversed(texts):
        room -= utf8_bytes(text)
        if room < 0:
            break
        fit += 1
    return _filled(contexts.BufferedChatCompletionContext(buffer_size=fit), texts)


def _filled(context: Any, texts: list[str]) -> Call:
    runner = asyncio.Runner()

    async def fill() -> None:
        for number, text in enumerate(texts):
            kind = models.AssistantMessage if number % 8 else models.UserMessage
            await context.add_message(kind(content=text, source="max"))

    runner.run(fill())
    return lambda: len(runner.run(context.get_messages()))


if __name__ == "__main__":
    serve({"TokenLimitedChatCompletionContext": token_limited, "BufferedChatCompletionContext": buffered})
