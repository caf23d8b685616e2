"""Patience with a server that is away: a node waits for it instead of pausing a conversation."""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from bullpen.clock import sleep
from bullpen.conversation.events import Trouble
from bullpen.conversation.journal import Journal
from bullpen.errors import StoreBusy, StoreUnreachable

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

AGAIN_SECONDS = 1.0


BEGINS = "The turn begins as soon as it is back."


async def patiently(
    journal: Journal, work: Callable[[], Coroutine[Any, Any, Result]], meanwhile: str = BEGINS
) -> Result:
    """Do something with the store; on a node again and again while the server is away, and people are told.

    Nobody should have to click in every conversation because a server was started again.
    """
    while True:
        try:
            return await work()
        except (StoreBusy, StoreUnreachable) as error:
            if not journal.state.is_of_node:
                raise
            logger.warning("not done conversation=%s error=%s", journal.state.conversation_id, error)
            journal.publish(Trouble(text=f"{error} {meanwhile}"))
        await sleep(AGAIN_SECONDS)
