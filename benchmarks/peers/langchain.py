"""langchain-core: trim_messages over a list of messages."""

from importlib import import_module
from typing import Any

from benchmarks.peers.stage import Call, serve, utf8_bytes

# By name, since the type checker's environment does not have it.
messages = import_module("langchain_core.messages")


def trim_messages(texts: list[str], max_bytes: int) -> Call:
    """Return a call that keeps the newest messages within the budget."""
    history = [
        messages.AIMessage(content=text) if number % 8 else messages.HumanMessage(content=text)
        for number, text in enumerate(texts)
    ]

    def trim() -> int:
        return len(messages.trim_messages(history, max_tokens=max_bytes, strategy="last", token_counter=_count))

    return trim


def _count(history: list[Any]) -> int:
    return sum([utf8_bytes(message.content) for message in history])


if __name__ == "__main__":
    serve({"trim_messages": trim_messages})
