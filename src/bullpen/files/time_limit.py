"""Processes that take far too long are killed, by one thread for all: a thread for each costs too much."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Thread

_changed = Condition()
_limits: "dict[subprocess.Popen[bytes], float]" = {}
_wakes: list[float] = []
"""When the thread looks next; empty: there is none."""


@contextmanager
def limited(process: "subprocess.Popen[bytes]", seconds: float) -> Iterator[None]:
    """Kill a process after some seconds, unless the context was left before."""
    limit = time.monotonic() + seconds
    with _changed:
        _limits[process] = limit
        if not _wakes:
            _wakes.append(limit)
            Thread(target=_watch, daemon=True).start()
        elif limit < _wakes[0]:
            _changed.notify()
    try:
        yield
    finally:
        with _changed:
            _limits.pop(process, None)


def _watch() -> None:
    with _changed:
        while _limits:
            _wakes[:] = [min(_limits.values())]
            _changed.wait(_wakes[0] - time.monotonic())
            for process in [one for one, limit in _limits.items() if limit <= time.monotonic()]:
                del _limits[process]
                process.kill()
        _wakes.clear()
