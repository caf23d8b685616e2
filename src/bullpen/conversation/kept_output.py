"""What an agent writes is stored while it writes, so that little of it is lost if this process is killed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bullpen.clock import sleep
from bullpen.conversation.journal import Journal
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import BullpenError, NotTheOwner

logger = logging.getLogger(__name__)

KEEP_SECONDS = 0.5
"""How often it is stored."""


@asynccontextmanager
async def keeping_output(journal: Journal, running: RunningTurn) -> AsyncIterator[None]:
    """Store what an agent writes, from time to time."""
    keeping = asyncio.create_task(_keep_output(journal, running))
    try:
        yield
    finally:
        keeping.cancel()


async def _keep_output(journal: Journal, running: RunningTurn) -> None:
    while True:
        await sleep(KEEP_SECONDS)
        if output := running.take_output():
            try:
                await journal.state.keep_output(running.turn.id, output)
            except NotTheOwner as error:
                journal.lose(error)
                return
            except (BullpenError, OSError) as error:
                # A full disk is reported when the turn ends and all of its output is stored.
                running.put_back(output)
                logger.warning("output not kept conversation=%s error=%s", journal.state.conversation_id, error)
