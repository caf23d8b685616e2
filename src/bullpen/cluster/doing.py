"""Doing something in the background for as long as a process takes part in a cluster."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from bullpen.clock import sleep

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0

Work = Callable[[], Coroutine[Any, Any, None]]


@asynccontextmanager
async def doing(*work: Work) -> AsyncIterator[None]:
    """Do something in the background until the context is left, again if it fails.

    A process that lives on without one of these would be worse than a dead one: nobody would notice.
    """
    tasks = [asyncio.create_task(again_if_it_fails(one)) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def again_if_it_fails(work: Work) -> None:
    """Do something to its end."""
    while True:
        try:
            return await work()
        except Exception:
            logger.exception("failed in the background, and begins again")
        await sleep(AGAIN_SECONDS)
