"""The clock: what time it is, and waiting for a time. Tests put one in its place that they move themselves."""

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class Clock:
    """The system's clock."""

    def time(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        """Wait, from this call on."""
        return asyncio.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Wait, and let nothing else happen in this thread."""
        time.sleep(seconds)


_clocks = [Clock()]


@contextmanager
def use(clock: Clock) -> Iterator[None]:
    """Let everything in this process read another clock meanwhile."""
    _clocks.append(clock)
    try:
        yield
    finally:
        _clocks.remove(clock)


def now() -> float:
    """Return the seconds since 1970."""
    return _clocks[-1].time()


def milliseconds() -> int:
    """Return the milliseconds since 1970."""
    return int(now() * 1000)


def monotonic() -> float:
    """Return seconds that never go back, to measure how long something takes."""
    return _clocks[-1].monotonic()


async def sleep(seconds: float) -> None:
    """Wait for some seconds."""
    await _clocks[-1].sleep(seconds)


def pause(seconds: float) -> None:
    """Wait for some seconds, and let nothing else happen in this thread."""
    _clocks[-1].pause(seconds)


async def first_of(futures: "Iterable[asyncio.Future[Any]]", seconds: float | None) -> None:
    """Wait until one of the futures is done, or for some seconds. None of them is cancelled."""
    # Not our own sleep(), which would begin to count only when its task runs.
    sleeping = [] if seconds is None else [asyncio.ensure_future(_clocks[-1].sleep(seconds))]
    try:
        await asyncio.wait([*futures, *sleeping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in sleeping:
            one.cancel()
