"""RemoteTeam: the agents of one conversation whose turns run on workers, and their folders there."""

import asyncio

from bullpen.agents.registry import spec_for
from bullpen.cluster.errands import end_errands_left
from bullpen.cluster.folder_names import folder_in, own_folder
from bullpen.cluster.node import Node
from bullpen.cluster.orders import settle_others
from bullpen.cluster.remote_agent import RemoteAgent
from bullpen.cluster.remote_checks import RemoteChecks
from bullpen.cluster.remote_folders import RemoteFolders
from bullpen.cluster.remote_worktrees import RemoteWorktrees
from bullpen.store.base import Store
from bullpen.team.team import Member, Team


class RemoteTeam:
    """What of a team is on workers."""

    def __init__(self, node: Node, conversation_id: str, team: Team, store: Store) -> None:
        self.folders = RemoteFolders(node, conversation_id, store)
        pools = {member.name: member.pool for member in team.agents if member.pool}
        self.worktrees = RemoteWorktrees(self.folders, conversation_id, pools, store)
        self.checks = RemoteChecks(node, conversation_id)
        self.forked = self.folders.forked
        self._node = node
        self._id = conversation_id
        self._store = store
        self._in_pools = {member.name for member in team.agents if member.pool}
        self._edited = {member.pool for member in team.agents if member.pool and member.permissions != "read-only"}

    async def start(self) -> None:
        """End what earlier owners of the conversation have ordered, and wait for what has begun of it with files.

        Turns continue that run, unless the team file takes their members out of their pools.
        """
        await self.folders.start()
        running = await asyncio.to_thread(self._store.running, self._id)
        adopted = [turn.id for turn in running if turn.member in self._in_pools]
        await settle_others(self._node.database, self._node.id, self._id, adopted)
        await end_errands_left(self._node, self._id)

    def agent(self, member: Member) -> RemoteAgent:
        """Return an agent whose turns run on the workers of its pool."""
        folder = folder_in(member.pool, member.cwd)
        shared = folder if member.workspace == "own" and member.permissions != "read-only" else None
        return RemoteAgent(
            member=member,
            spec=spec_for(member.agent, member.command, name=member.name),
            folder=folder if shared is None else own_folder(folder, member.name, ""),
            shared=shared,
            conversation_id=self._id,
            node=self._node,
            folders=self.folders,
            is_edited=member.pool in self._edited,
        )
