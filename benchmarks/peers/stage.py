"""The other side of a comparison: a program in a peer's environment that handles requests, one JSON text per line.

Nothing but the standard library is imported here: bullpen and msgspec are not where this runs.
"""

import gc
import json
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle, islice
from time import process_time
from types import FrameType
from typing import TypeVar

LONGEST_CALL_SECONDS, LONGEST_FILL_SECONDS = 20, 90

Result = TypeVar("Result")
Call = Callable[[], int]
"""Trims once, and returns how many messages it has kept."""
Fill = Callable[[list[str], int], Call]
"""Makes messages of texts, keeps them for a budget of bytes, and returns a function that trims them."""


def serve(candidates: Mapping[str, Fill]) -> None:
    """Answer requests until the input ends. The first line has the texts and the budget."""
    signal.signal(signal.SIGALRM, _stop)
    beginning = json.loads(sys.stdin.readline())
    calls: dict[str, Call] = {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["candidate"]
        match request["do"]:
            case "fill":
                calls.pop(name, None)
                texts = _recurring(beginning["texts"], request["length"])
                gc.collect()
                answer, filled = _timed(partial(candidates[name], texts, beginning["max_bytes"]), LONGEST_FILL_SECONDS)
                if filled is not None:
                    calls[name] = filled
            case "trim":
                answer, _ = _timed(calls[name], LONGEST_CALL_SECONDS)
            case _:
                calls.pop(name, None)
                answer = 0.0
        print(json.dumps(answer), flush=True)


def _recurring(texts: list[str], count: int) -> list[str]:
    """Return as many texts as our own side uses, in the same order."""
    start = -count % len(texts)
    return list(islice(cycle(texts), start, start + count))


def _timed(run: Callable[[], Result], longest_seconds: int) -> tuple[float | str, Result | None]:
    """Return the time and the result of a call, or a text that says why it has none."""
    # A wall-clock timer: a timer of processor time makes its clock coarse.
    signal.alarm(longest_seconds)
    start = process_time()
    try:
        result = run()
        return process_time() - start, result
    except TimeoutError:
        return "too long, stopped", None
    except Exception as error:
        traceback.print_exc()
        return f"failed: {type(error).__name__}", None
    finally:
        signal.alarm(0)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def utf8_bytes(text: str) -> int:
    """Return the size of a text, the same for all candidates."""
    return len(text.encode())
