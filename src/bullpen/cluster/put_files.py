"""Files on workers put back in a conversation that nobody has open, for `bullpen undo` and its like."""

import asyncio
from collections.abc import Callable

from bullpen.clock import milliseconds
from bullpen.cluster.node import Node
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.cluster.short_node import open_short_node
from bullpen.conversation.conversation import decider
from bullpen.conversation.file_history import FileChoice, FileHistory
from bullpen.conversation.owner import owned
from bullpen.file_changes import ChangeRecord
from bullpen.store.base import Store
from bullpen.team.reader import read_team

Find = Callable[[Store], tuple[str, str | None, FileChoice]]
"""Returns which conversation is meant, which turn, and what is to be done."""


async def put_files_there(url: str, find: Find) -> list[ChangeRecord]:
    """Undo, redo or rewind as a node that is there for a moment; return what was completed, and what was done.

    WorkerAway is raised if the worker that has the files is away.
    """
    async with open_short_node(url) as (node, store):
        return await _put(node, store, find)


async def _put(node: Node, store: Store, find: Find) -> list[ChangeRecord]:
    conversation_id, turn_id, choice = await asyncio.to_thread(find, store)
    team = read_team((await asyncio.to_thread(store.conversation, conversation_id)).team_file)
    there = RemoteTeam(node, conversation_id, team, store)
    loop = asyncio.get_running_loop()

    def put() -> list[ChangeRecord]:
        with owned(store, conversation_id) as owner:
            # Only now: what another owner has ordered is theirs.
            asyncio.run_coroutine_threadsafe(there.start(), loop).result()
            history = FileHistory(store, conversation_id, owner, there.folders, there.worktrees, there.forked)
            return history.complete_and_put(choice, turn_id, decider(team), at=milliseconds())

    return await asyncio.to_thread(put)
