"""StoreThread: the thread that a store is used in, so that a slow disk delays nobody on the event loop.

An executor would do; but `say` waits for every step on the way there and back, and this way has fewer.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class StoreThread:
    """Does one thing after the other, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._is_closed = False
        # Whoever ends without closing it need not wait for it: what was not stored by then was not promised.
        self._thread = Thread(target=self._work, name="bullpen-store", daemon=True)
        self._thread.start()

    async def do(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Do something that blocks. It is done even if nobody waits for it any more."""
        return await self._asked(partial(work, *args, **kwargs))

    def close(self) -> None:
        """End after what was asked for. Closing twice is harmless."""
        self._is_closed = True
        self._jobs.put(None)
        self._thread.join()

    def _asked(self, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        if self._is_closed:
            raise ValueError("The store is closed.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()
        self._jobs.put((loop, done, work))
        return done

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, done, work = job
            try:
                settle = partial(_settle, done, work())
            except BaseException as error:
                settle = partial(_settle, done, None, error)
            # The loop may be closed by now, and with it everybody who waited.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle)
            # An error keeps this frame alive, and so would keep all of these until the next job.
            del job, loop, done, work, settle


def _settle(done: "asyncio.Future[Any]", result: object, error: BaseException | None = None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
