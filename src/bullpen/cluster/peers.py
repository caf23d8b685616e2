"""Peers: the other nodes, which of them owns a conversation, and what those leave that die."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import Literal, LiteralString

from msgspec import Struct

from bullpen.clock import sleep
from bullpen.cluster.bell import LOCK_CLASS, seldom_ring
from bullpen.cluster.database import GONE
from bullpen.cluster.doing import doing
from bullpen.cluster.node import PROCESSES, Node, open_node
from bullpen.cluster.remote_forks import finding_files
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.cluster.shared_access import SharedAccess
from bullpen.conversation.files_to_fork import FindFiles
from bullpen.errors import StoreError, UnknownConversation
from bullpen.store.base import Owner, Store
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.thread import Desk
from bullpen.store.threads import StoreThreads
from bullpen.team.team import Team

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.7
"""How often to look whether a node is dead: that rings no bell."""
SELDOM = 10
"""After this many looks, look for what was left even if the same nodes live."""
WAIT_SECONDS = 0.3
"""At most; a random part of it is waited, and their order is random: so not all nodes want the same at once."""
AGAIN_SECONDS = 1.0
"""After this, what is still left is repeated: the node that wanted it may have died, too."""
MOST_AGAIN_SECONDS = 10.0
MOST_KNOWN = 10_000
THREADS = 8


class Peer(Struct, frozen=True):
    """Another node that is alive."""

    number: int
    passage: str
    """Where it takes requests of other nodes: host:port."""
    secret: str
    """What others show there."""


class Told(Struct, frozen=True):
    """When to tell again that a conversation is left."""

    again_at: float = 0.0
    pause: float = AGAIN_SECONDS

    def told(self, now: float) -> "Told":
        """Return the same after it was told: what nobody here can continue is told more and more seldom."""
        return Told(now + self.pause, min(2 * self.pause, MOST_AGAIN_SECONDS))


class Peers:
    """The cluster, seen from one node."""

    def __init__(self, node: Node, store: PostgresStore, desk: Desk) -> None:
        self._node = node
        self.store = store
        """Its conversations."""
        self.desk = desk
        """Where the work with them is done."""
        self._peers: dict[int, Peer] = {}
        self._known: dict[str, int] = {}
        """Which node owned a conversation when that was last looked up: one that does not own it says so."""
        self._changed = asyncio.Condition()
        self._left: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        """What is in it, or about to be continued."""

    @property
    def number(self) -> int:
        """This node's number in the cluster."""
        return self._node.id

    @property
    def given_up(self) -> asyncio.Event:
        """Set when others took this node for dead: it owns nothing any more."""
        return self._node.member.given_up

    def team(self, conversation_id: str, team: Team, store: Store) -> RemoteTeam:
        """Return the agents of a conversation whose turns run on workers."""
        return RemoteTeam(self._node, conversation_id, team, store)

    def finding_files(self) -> FindFiles:
        """Return what finds the files of conversations on workers, to fork them."""
        return finding_files(self._node)

    async def welcome(self, passage: str, secret: str, url: str) -> None:
        """Tell the others where this node takes their requests, and where people find it."""
        query: LiteralString = (
            "WITH told AS (UPDATE processes SET passage = %s, secret = %s, url = %s WHERE id = %s)"
            " SELECT pg_notify(%s, '')"
        )
        await self._node.database.do(query, passage, secret, url, self.number, PROCESSES)

    async def owner_of(
        self, conversation_id: str, *, doubted: int = 0
    ) -> Peer | Literal["here", "nobody", "left", "unknown"]:
        """Return the node that owns a conversation; the node number `doubted` did not answer."""
        known = self._peers.get(self._known.get(conversation_id, 0))
        if known is not None and not doubted:
            return known
        self._known.pop(conversation_id, None)
        try:
            owner = await self.desk.do(self.store.owner_of, conversation_id)
        except (UnknownConversation, StoreError):
            # The answer from here says so.
            return "nobody"
        if owner is None or not owner.node:
            return "nobody"
        if owner.node == self.number:
            return "here"
        peer = self._peers.get(owner.node)
        if peer is None or doubted == owner.node:
            return await self._in_doubt(owner, peer)
        self._remember(conversation_id, peer)
        return peer

    async def _in_doubt(self, owner: Owner, peer: Peer | None) -> Peer | Literal["left", "unknown"]:
        with suppress(StoreError):
            if await self.desk.do(self.store.is_locked, owner) is False:
                return "left"
        return peer or "unknown"

    def _remember(self, conversation_id: str, peer: Peer) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[conversation_id] = peer.number

    async def until_gone(self, number: int) -> None:
        """Wait until a node has left, died or frozen."""
        async with self._changed:
            await self._changed.wait_for(lambda: number not in self._peers)

    async def others(self) -> AsyncIterator[list[Peer]]:
        """Yield the other nodes, and again whenever there are others."""
        while True:
            yield list((before := self._peers).values())
            async with self._changed:
                await self._changed.wait_for(lambda: self._peers is not before)

    async def left_alone(self) -> AsyncIterator[str]:
        """Yield conversations with unfinished turns whose node has died, without an end."""
        while True:
            one = await self._left.get()
            try:
                yield one
            finally:
                self._waiting.discard(one)

    async def watch(self) -> None:
        """Know who is alive, and what the dead have left, until it is cancelled."""
        told: dict[str, Told] = {}
        seen: set[int] = set()
        looks = 0
        with self._node.bell.waiting(PROCESSES) as ringing:
            while True:
                ringing.clear()
                with suppress(StoreError, *GONE):
                    living = await self.look()
                    await self.desk.do(self.store.renew_locks)
                    looks += 1
                    if living != seen or told or looks % SELDOM == 0:
                        told = await self._tell_what_is_left(living, told)
                        seen = living
                await seldom_ring(ringing, LOOK_SECONDS)

    async def _tell_what_is_left(self, living: set[int], told: dict[str, Told]) -> dict[str, Told]:
        """Tell what is left, and what was told a while ago and still is; return what is known of each then."""
        left = await self.desk.do(self.store.left_by_nodes, sorted(living))
        now = monotonic()
        known = {one: told.get(one, Told()) for one in left}
        new = [one for one, before in known.items() if one not in self._waiting and before.again_at <= now]
        if new:
            await sleep(random.uniform(0, WAIT_SECONDS))  # noqa: S311 (no secret)
        for one in random.sample(new, len(new)):
            self._waiting.add(one)
            self._left.put_nowait(one)
        return known | {one: known[one].told(now) for one in new}

    async def look(self) -> set[int]:
        """Look which nodes are alive. One that was given up is not, nor one that has died: it holds no lock."""
        query: LiteralString = """
            SELECT id, passage, secret, EXISTS (
                SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND classid = %s AND objid = id::oid)
            FROM processes WHERE kind = 'node' AND ended_at IS NULL
        """
        rows = await self._node.database.once(query, LOCK_CLASS)
        peers = {
            number: Peer(number, passage, secret)
            for number, passage, secret, _ in rows
            if passage and number != self.number
        }
        if peers != self._peers:
            async with self._changed:
                self._peers = peers
                self._changed.notify_all()
        return {self.number} | {number for number, _, _, is_locked in rows if is_locked}


@asynccontextmanager
async def open_peers(access: SharedAccess, *, name: str, host: str) -> AsyncIterator[Peers]:
    """Be a node that serves people beside others, until the context is left."""
    threads = StoreThreads(THREADS)
    try:
        async with open_node(access.url, name=name, host=host) as node:
            store = await threads.do(node.open_store)
            try:
                peers = Peers(node, store, threads)
                await peers.look()
                async with doing(peers.watch, partial(access.watch, node.database, node.bell)):
                    yield peers
            finally:
                # Its locks are free then, so that others can continue what it had.
                await threads.do(store.close)
    finally:
        threads.close()
