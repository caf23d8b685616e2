"""Time trim_messages. Reads what to trim as JSON from standard input, writes seconds by length as JSON.

Runs in an environment of its own, where there is langchain-core and no bullpen.
"""

import json
import signal
import sys
from importlib import import_module
from statistics import median
from time import process_time
from types import FrameType
from typing import Any

LONGEST_CALL_SECONDS = 60
ROUNDS = 5

# By name, since the type checker's environment does not have it.
messages = import_module("langchain_core.messages")


def main() -> None:
    """Answer one request. The lengths grow, so the first that takes too long is the last that is tried."""
    request = json.load(sys.stdin)
    history = [_message(number, text) for number, text in enumerate(request["texts"])]
    signal.signal(signal.SIGALRM, _stop)
    answer: dict[int, float | str] = {}
    for length in request["lengths"]:
        try:
            answer[length] = _seconds(history[-length:], request["max_bytes"])
        except TimeoutError:
            answer[length] = f"over {LONGEST_CALL_SECONDS} s, stopped"
            break
    json.dump(answer, sys.stdout)


def _message(number: int, text: str) -> Any:
    return messages.AIMessage(content=text) if number % 8 else messages.HumanMessage(content=text)


def _seconds(history: list[Any], max_bytes: int) -> float:
    times = []
    for _ in range(1 + ROUNDS):
        signal.alarm(LONGEST_CALL_SECONDS)
        start = process_time()
        messages.trim_messages(history, max_tokens=max_bytes, strategy="last", token_counter=_utf8_bytes)
        times.append(process_time() - start)
        signal.alarm(0)
    return median(times[1:])


def _utf8_bytes(history: list[Any]) -> int:
    return sum([len(message.content.encode()) for message in history])


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


if __name__ == "__main__":
    main()
