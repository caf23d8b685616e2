"""A clock that stands still until a test moves it."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from bullpen.clock import Clock


class ManualClock(Clock):
    """Starts at the time of the system, and wakes who waits when it is moved past their time."""

    def __init__(self) -> None:
        self._start = time.time()
        self._moved = 0.0
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []

    @property
    def waiting(self) -> int:
        """How many wait for a time that has not come."""
        return sum(not future.done() for _, future in self._waiting)

    def time(self) -> float:
        """Return the seconds since 1970."""
        return self._start + self._moved

    def monotonic(self) -> float:
        """Return how far it was moved."""
        return self._moved

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        """Wait until it is moved past that time, counted from this call on."""
        if seconds <= 0:
            return asyncio.sleep(0)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((self._moved + seconds, future))
        return self._until_woken(future)

    async def _until_woken(self, future: "asyncio.Future[None]") -> None:
        try:
            await future
        finally:
            self._waiting = [one for one in self._waiting if one[1] is not future]

    def pause(self, seconds: float) -> None:
        """Let that time pass at once."""
        self.advance(seconds)

    async def until(self, is_so: Callable[[], bool], *, step: float = 1.0) -> None:
        """Move it step by step until something is so."""
        while not is_so():
            self.advance(step)
            await asyncio.sleep(0.001)

    async def until_waiting(self, count: int = 1) -> None:
        """Wait until that many wait for a time."""
        while self.waiting < count:
            await asyncio.sleep(0.001)

    def advance(self, seconds: float) -> None:
        """Move it, and wake who has waited long enough."""
        self._moved += seconds
        for at, future in sorted(self._waiting, key=lambda one: one[0]):
            if at <= self._moved and not future.done():
                future.set_result(None)


class UntilThere(Clock):
    """For those who wait for a certain number of seconds, these are over when files are there."""

    def __init__(self, seconds: float, *files: Path) -> None:
        self._seconds = seconds
        self._files = files

    async def sleep(self, seconds: float) -> None:
        """Wait for the files, or for the time."""
        if seconds != self._seconds:
            await super().sleep(seconds)
            return
        while not all(file.exists() for file in self._files):
            await asyncio.sleep(0.001)
