"""Nodes: the other nodes of a cluster, as far as pages need to know them. `bullpen.cluster` has the real ones."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from bullpen.conversation.files_to_fork import FindFiles
from bullpen.conversation.member_agent import RemoteTeam
from bullpen.database import Database, SharedDatabase
from bullpen.team.team import Team

Whereabouts = Literal["here", "nobody", "left", "unknown"]
"""Whose a conversation is, if it is not another node's: this one's, nobody's, that of a node that died or left it, or
of one that does not say yet where it is."""


class Peer(Protocol):
    """Another node that is alive."""

    @property
    def number(self) -> int:
        """Its number in the cluster."""
        ...

    @property
    def passage(self) -> str:
        """Where it takes requests of other nodes: host:port."""
        ...

    @property
    def secret(self) -> str:
        """What others show there."""
        ...


class Nodes(Protocol):
    """A cluster, seen from one of its nodes."""

    @property
    def number(self) -> int:
        """This node's number in the cluster."""
        ...

    def team(self, conversation_id: str, team: Team, store: Database) -> RemoteTeam:
        """Return the agents of a conversation whose turns run on workers."""
        ...

    def finding_files(self) -> FindFiles:
        """Return what finds the files of conversations on workers, to fork them."""
        ...

    async def welcome(self, passage: str, secret: str, url: str) -> None:
        """Tell the others where this node takes their requests, and where people find it."""
        ...

    async def owner_of(self, conversation_id: str, *, doubted: int = 0) -> Peer | Whereabouts:
        """Return the node that owns a conversation; the node number `doubted` did not answer."""
        ...

    async def until_gone(self, number: int) -> None:
        """Wait until a node has left, died or frozen."""
        ...

    def others(self) -> AsyncIterator[Sequence[Peer]]:
        """Yield the other nodes, and again whenever there are others; without an end."""
        ...

    def left_alone(self) -> AsyncIterator[str]:
        """Yield conversations with unfinished turns whose node has died, as soon as that is noticed; without an end."""
        ...


class Cluster(Struct, frozen=True):
    """The cluster that a server is a part of."""

    nodes: Nodes
    shared: SharedDatabase
    host: str
    """An address of this machine that other nodes can reach."""
