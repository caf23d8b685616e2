"""StoreThreads: several threads that use a store on a server, which is slower for one, and takes several at once."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import ParamSpec, TypeVar

from bullpen.store.thread import Desk, Job, run

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class StoreThreads:
    """Runs jobs as soon as a thread is free."""

    def __init__(self, count: int) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_closed = False
        names = [f"bullpen-store-{number}" for number in range(1, count + 1)]
        self._threads = [Thread(target=self._serve, name=name, daemon=True) for name in names]
        for thread in self._threads:
            thread.start()

    async def do(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Run something that blocks. It runs to its end even if the caller is cancelled."""
        job = new_job(partial(work, *args, **kwargs))
        self.soon(partial(run, job))
        result: Result = await job[1]
        return result

    def line(self) -> Desk:
        """Return where the work of one conversation is done: one job after the other, in order."""
        return Line(self)

    def soon(self, work: Callable[[], None]) -> None:
        """Call something in one of the threads."""
        if self._is_closed:
            raise ValueError("The store is closed.")
        self._work.put(work)

    def close(self) -> None:
        """End after the jobs that wait. Closing twice is harmless."""
        self._is_closed = True
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work


class Line:
    """Runs the jobs of one conversation in order, in any thread that is free."""

    def __init__(self, threads: StoreThreads) -> None:
        self._threads = threads
        self._lock = Lock()
        self._jobs: deque[Job] = deque()

    async def do(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Run something that blocks. It runs to its end even if the caller is cancelled."""
        job = new_job(partial(work, *args, **kwargs))
        with self._lock:
            self._jobs.append(job)
            is_first = len(self._jobs) == 1
        if is_first:
            self._threads.soon(self._run)
        result: Result = await job[1]
        return result

    def line(self) -> Desk:
        """Return this one: all that it does is in order."""
        return self

    def _run(self) -> None:
        has_more = True
        while has_more:
            run(self._jobs[0])
            with self._lock:
                self._jobs.popleft()
                has_more = bool(self._jobs)


def new_job(work: Callable[[], object]) -> Job:
    """Return a job for the loop that is running."""
    loop = asyncio.get_running_loop()
    return loop, loop.create_future(), work
