"""Tidying: a worker removes what it keeps for conversations that are deleted, and keeps everything if in doubt."""

import asyncio
import logging

from bullpen.clock import sleep
from bullpen.cluster.database import Database
from bullpen.cluster.file_desk import FileDesk
from bullpen.errors import BullpenError
from bullpen.files.git import GitFailed

logger = logging.getLogger(__name__)

EVERY_SECONDS = 3600.0
"""Also when it begins: it may have been away while conversations were deleted."""


async def tidy_for_ever(database: Database, desk: FileDesk, worker: int) -> None:
    """Ask again and again which conversations are deleted, and remove what is kept for them, until cancelled."""
    while True:
        known = await asyncio.to_thread(desk.kept.conversations)
        if known and (rows := await database.do("SELECT deleted_of(%s, %s)", worker, known)):
            try:
                removed = await asyncio.to_thread(desk.remove_unneeded, [str(row[0]) for row in rows])
                logger.info("conversations deleted count=%d removed=%s", len(rows), removed)
            except (BullpenError, GitFailed, OSError) as error:
                logger.warning("not removed what is kept for deleted conversations error=%s", error)
        await sleep(EVERY_SECONDS)
