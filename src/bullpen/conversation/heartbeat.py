"""The heartbeat: while a conversation is open, its owner says every few seconds that it is alive."""

import logging

from bullpen.clock import milliseconds, sleep
from bullpen.conversation.journal import Journal
from bullpen.conversation.owner import BEAT_SECONDS, NODE_BEAT_SECONDS
from bullpen.errors import BullpenError, NotTheOwner, UnknownConversation

logger = logging.getLogger(__name__)


async def keep_alive(journal: Journal) -> None:
    """Say so until the conversation is closed, or another process took or deleted it: then all stops here."""
    while True:
        await sleep(NODE_BEAT_SECONDS if journal.state.is_of_node else BEAT_SECONDS)
        try:
            await journal.state.beat(milliseconds())
        except (NotTheOwner, UnknownConversation) as error:
            journal.lose(error)
            return
        except BullpenError as error:
            # On a full disk, for example. As long as nobody else wants the conversation, it stays ours.
            logger.warning("no heartbeat conversation=%s error=%s", journal.state.conversation_id, error)
