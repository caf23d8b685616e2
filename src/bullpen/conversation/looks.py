"""A look at a folder in which nobody of the team works: what changed there since the last one is somebody else's."""

import asyncio

from bullpen.clock import milliseconds
from bullpen.conversation.events import FilesChanged
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.journal import Journal
from bullpen.conversation.watched_folder import WatchedFolder
from bullpen.file_changes import ChangeRecord


async def look_between_turns(folder: WatchedFolder, history: FileHistory, journal: Journal) -> str:
    """Return the id of all files now, and record what changed while no turn was running there.

    What a turn has changed whose worker is just back is not known yet, and is not taken for what people did.
    """
    look = await asyncio.to_thread(folder.workspace.snapshot)
    if look.is_away:
        return ""
    now, before = look.id, folder.known
    folder.seen(look)
    if before and now and now != before and not folder.at_work:
        if await journal.state.in_store(history.has_begun, folder.path):
            return now
        changes = await asyncio.to_thread(folder.workspace.compare, before, now)
        if changes.files:
            record = ChangeRecord(kind="people", at=milliseconds(), changes=changes)
            journal.publish(FilesChanged.of(await journal.state.in_store(history.add, record)))
    return now
