"""Processes that begin at the same moment, tell what they have done as they go, and may be killed."""

import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

Tell = Callable[[Any], None]


def together(functions: Sequence[Callable[[Tell], None]], kill_after: float | None = None) -> list[list[Any]]:
    """Return what each function told in a process of its own; the first one may be killed after some seconds.

    They are forked, so no store may be open here.
    """
    gate, opener = os.pipe()
    children = [_child(function, gate, opener) for function in functions]
    os.close(gate)
    os.close(opener)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(children[0][0], signal.SIGKILL)
    return [_told(*child) for child in children]


def _child(function: Callable[[Tell], None], gate: int, opener: int) -> tuple[int, int]:
    output, pipe = os.pipe()
    child = os.fork()
    if child:
        os.close(pipe)
        return child, output
    try:
        os.close(opener)
        os.read(gate, 1)
        function(lambda told: _write(pipe, told))
    except BaseException:
        _write(pipe, ("crashed", traceback.format_exc(limit=-4)))
    finally:
        os._exit(0)


def _write(pipe: int, told: object) -> None:
    data = pickle.dumps(told)
    # At once, so that a kill leaves whole pieces only.
    os.write(pipe, len(data).to_bytes(4, "big") + data)


def _told(child: int, output: int) -> list[Any]:
    with os.fdopen(output, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    told = []
    while data:
        size = int.from_bytes(data[:4], "big")
        told.append(pickle.loads(data[4 : 4 + size]))
        data = data[4 + size :]
    return told
