"""Continuing what other nodes leave when they die or stop, without anybody asking for it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bullpen.errors import BullpenError, ConversationInUse
from bullpen.web.conversations import Hub
from bullpen.web.nodes import Nodes

AT_ONCE = 8

logger = logging.getLogger(__name__)


@asynccontextmanager
async def continuing(hub: Hub, nodes: Nodes) -> AsyncIterator[None]:
    """Continue conversations with unfinished turns whose node is gone, until the context is left."""
    said: dict[str, str] = {}
    tasks = [asyncio.create_task(_continue_all(hub, nodes.left_alone(), said)) for _ in range(AT_ONCE)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _continue_all(hub: Hub, left: AsyncIterator[str], said: dict[str, str]) -> None:
    async for conversation_id in left:
        try:
            await hub.take_over(conversation_id)
        except ConversationInUse:
            # Another node was faster.
            pass
        except BullpenError as error:
            if said.get(conversation_id) != str(error):
                said[conversation_id] = str(error)
                logger.warning("not continued conversation=%s error=%s", conversation_id, error)
        except Exception:
            logger.exception("not continued conversation=%s", conversation_id)
        else:
            said.pop(conversation_id, None)
            logger.info("continued conversation=%s", conversation_id)
