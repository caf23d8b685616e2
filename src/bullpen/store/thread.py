"""StoreThread: the thread that uses a store, so that a slow disk does not block the event loop.

An executor would work, too, but takes more steps, and `say` waits for each of them.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class Desk(Protocol):
    """Where the work with a store is done."""

    async def do(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Run something that blocks. It runs to its end even if the caller is cancelled."""
        ...

    def line(self) -> "Desk":
        """Return where the work of one conversation is done: one job after the other, in order."""
        ...


class StoreThread:
    """Runs one job after the other, in order."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._is_closed = False
        # A process that exits without closing it need not wait: nobody was told that the rest is stored.
        self._thread = Thread(target=self._work, name="bullpen-store", daemon=True)
        self._thread.start()

    async def do(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Run something that blocks. It runs to its end even if the caller is cancelled."""
        return await self._submit(partial(work, *args, **kwargs))

    def line(self) -> Desk:
        """Return this one: all that it does is in order."""
        return self

    def close(self) -> None:
        """End after the jobs in the queue. Closing twice is harmless."""
        self._is_closed = True
        self._jobs.put(None)
        self._thread.join()

    def _submit(self, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        if self._is_closed:
            raise ValueError("The store is closed.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()
        self._jobs.put((loop, done, work))
        return done

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            run(job)
            # It would be kept alive until the next one.
            del job


def run(job: Job) -> None:
    """Run a job, and tell its loop what came of it."""
    loop, done, work = job
    try:
        settle = partial(_settle, done, work())
    except BaseException as error:
        settle = partial(_settle, done, None, error)
    # The loop may be closed by now.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)
    # An error keeps this frame alive, and would keep these alive with it.
    del job, loop, done, work, settle


def _settle(done: "asyncio.Future[Any]", result: object, error: BaseException | None = None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
