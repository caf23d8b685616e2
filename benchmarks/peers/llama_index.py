"""llama-index-core: ChatMemoryBuffer, and Memory, which its documentation prefers."""

import asyncio
import warnings
from importlib import import_module
from typing import Any

from benchmarks.peers.stage import Call, serve

BATCH = 500

warnings.simplefilter("ignore")
# By name, since the type checker's environment does not have it.
llms = import_module("llama_index.core.llms")
memories = import_module("llama_index.core.memory")


def chat_memory_buffer(texts: list[str], max_bytes: int) -> Call:
    """Return a call of ChatMemoryBuffer.get."""
    memory = memories.ChatMemoryBuffer.from_defaults(
        chat_history=_messages(texts), token_limit=max_bytes, tokenizer_fn=str.encode
    )
    return lambda: len(memory.get())


def memory(texts: list[str], max_bytes: int) -> Call:
    """Return a call of Memory.aget. It trims when messages are added, so that is part of filling it."""
    runner = asyncio.Runner()
    memory = memories.Memory.from_defaults(
        token_limit=max_bytes,
        chat_history_token_ratio=1.0,
        token_flush_size=max_bytes // 10,
        tokenizer_fn=str.encode,
    )
    messages = _messages(texts)
    # Many thousand at once are more than the variables that one statement of its SQLite may have.
    for start in range(0, len(messages), BATCH):
        runner.run(memory.aput_messages(messages[start : start + BATCH]))
    return lambda: len(runner.run(memory.aget()))


def _messages(texts: list[str]) -> list[Any]:
    return [
        llms.ChatMessage(role="assistant" if number % 8 else "user", content=text) for number, text in enumerate(texts)
    ]


if __name__ == "__main__":
    serve({"ChatMemoryBuffer": chat_memory_buffer, "Memory": memory})
